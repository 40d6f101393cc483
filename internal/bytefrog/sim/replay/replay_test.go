// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/hqtest"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, name string) (*capture.Capture, *replay.Recording) {
	t.Helper()
	c, err := capture.Open("../../../../testdata/bytefrog/" + name + ".zip")
	require.NoError(t, err)
	r, err := replay.Load(c)
	require.NoError(t, err)
	return c, r
}

func configuration(connections int32) bytefrog.AgentConfiguration {
	return bytefrog.AgentConfiguration{
		RunID:              200,
		HeartbeatInterval:  20 * time.Millisecond,
		Exclusions:         []string{},
		Inclusions:         []string{},
		BufferMemoryBudget: 1 << 20,
		QueueRetryCount:    10,
		DataConnections:    connections,
	}
}

// messages divides data into messages, one string for each.
func messages(t *testing.T, data [][]byte) []string {
	t.Helper()
	var list []string
	for _, b := range data {
		for len(b) > 0 {
			n := bytefrog.EventSize(bytefrog.MessageType(b[0]))
			if n == 0 {
				var err error
				_, n, err = bytefrog.DecodeData(b, bytefrog.MaxString)
				require.NoError(t, err)
				require.NotZero(t, n, "a truncated message at the end")
			}
			list = append(list, string(b[:n]))
			b = b[n:]
		}
	}
	return list
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// captured returns the captured data after the hellos.
func captured(c *capture.Capture) [][]byte {
	var data [][]byte
	for _, b := range c.Data {
		data = append(data, b[2:])
	}
	return data
}

func breaks(control []bytefrog.Message) []uint32 {
	var list []uint32
	for _, m := range control {
		if b, ok := m.(bytefrog.DataBreak); ok {
			list = append(list, b.Sequence)
		}
	}
	return list
}

func classes(control []bytefrog.Message) int {
	n := 0
	for _, m := range control {
		if _, ok := m.(bytefrog.ClassReport); ok {
			n++
		}
	}
	return n
}

func TestReplayDeliversExactlyTheMessagesOfTheCapture(t *testing.T) {
	for _, test := range []struct {
		capture     string
		connections int32
		buffer      int
		options     replay.Options
		breaks      []uint32
		classes     int
	}{
		{capture: "shop", connections: 2, classes: 40},
		{capture: "shop", connections: 1, buffer: 100, classes: 40},
		{capture: "shop", connections: 7, buffer: 20, options: replay.Options{Shuffle: true, Seed: 1}, classes: 40},
		{capture: "shop", connections: 2, options: replay.Options{Speed: 4}, classes: 40},
		{capture: "suspend", connections: 2, breaks: []uint32{13322, 28180}, classes: 33},
		{capture: "suspend", connections: 5, buffer: 1000, options: replay.Options{Shuffle: true, Seed: 7, Window: 16}, breaks: []uint32{13322, 28180}, classes: 33},
		{capture: "startsuspended", connections: 3, buffer: 64 << 10, classes: 33},
		{capture: "maven", connections: 3, classes: 2365},
		{capture: "maven", connections: 16, buffer: 3000, options: replay.Options{Shuffle: true, Seed: 3, Window: replay.DefaultWindow}, classes: 2365},
	} {
		if testing.Short() && test.capture == "maven" {
			continue
		}
		t.Run(fmt.Sprintf("%s over %d connections in buffers of %d", test.capture, test.connections, test.buffer), func(t *testing.T) {
			c, r := open(t, test.capture)
			hq := hqtest.New(t)
			agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: hq.Endpoint(), BufferSize: test.buffer}, replay.New(r, test.options))
			result := make(chan bytefrogagent.Result, 1)
			go func() { result <- agent.Run(context.Background()) }()
			hq.Begin(configuration(test.connections))
			got := <-result
			hq.WaitClosed()

			assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
			assert.NoError(t, got.Err)
			assert.Equal(t, r.Events(), got.Stats.Events)
			assert.True(t, slices.Equal(sorted(messages(t, captured(c))), sorted(messages(t, hq.DataBytes()))), "the messages differ")
			assert.Equal(t, test.breaks, breaks(hq.ControlMessages()))
			assert.Equal(t, test.classes, classes(hq.ControlMessages()))
		})
	}
}

// The begin of a recording has the messages of the capture without later events, and the breaks before its end.
func TestTheBeginOfARecordingHasNoLaterEvents(t *testing.T) {
	const n = 20_000
	c, r := open(t, "suspend")
	begin := r.Before(n)
	hq := hqtest.New(t)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: hq.Endpoint()}, replay.New(begin, replay.Options{}))
	result := make(chan bytefrogagent.Result, 1)
	go func() { result <- agent.Run(context.Background()) }()
	hq.Begin(configuration(2))
	got := <-result
	hq.WaitClosed()

	assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
	assert.EqualValues(t, n, begin.Events())
	assert.EqualValues(t, n, got.Stats.Events)
	want := slices.DeleteFunc(messages(t, captured(c)), func(m string) bool {
		number := numbers([]string{m})
		return len(number) > 0 && number[0] >= n
	})
	assert.True(t, slices.Equal(sorted(want), sorted(messages(t, hq.DataBytes()))), "the messages differ")
	assert.Equal(t, []uint32{13322}, breaks(hq.ControlMessages()))
	assert.EqualValues(t, 47_870, r.Events(), "the recording stays as it was")
}

// namings returns the names of threads with the numbers around them, on each connection: the last one before and the
// next two after.
func namings(t *testing.T, data [][]byte) map[string][]uint32 {
	found := map[string][]uint32{}
	for _, b := range data {
		list := messages(t, [][]byte{b})
		for i, m := range list {
			if bytefrog.MessageType(m[0]) == bytefrog.TypeMapThreadName {
				before, behind := numbers(list[:i]), numbers(list[i:])
				found[m] = append(before[max(0, len(before)-1):], behind[:min(2, len(behind))]...)
			}
		}
	}
	return found
}

// With all buffer sizes and numbers of connections, the messages around the name of a thread show where it becomes
// valid. Only the first name on a connection may have additional messages before it.
func TestNamesOfThreadsHaveTheSamePositionInAReplay(t *testing.T) {
	for _, test := range []struct {
		connections int32
		buffer      int
		options     replay.Options
	}{
		{connections: 1},
		{connections: 1, buffer: 100},
		{connections: 7, buffer: 20, options: replay.Options{Shuffle: true, Seed: 1}},
		{connections: 3, buffer: 512, options: replay.Options{Shuffle: true, Seed: 2}},
	} {
		t.Run(fmt.Sprintf("%d connections in buffers of %d", test.connections, test.buffer), func(t *testing.T) {
			c, r := open(t, "shop")
			hq := hqtest.New(t)
			agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: hq.Endpoint(), BufferSize: test.buffer}, replay.New(r, test.options))
			result := make(chan bytefrogagent.Result, 1)
			go func() { result <- agent.Run(context.Background()) }()
			hq.Begin(configuration(test.connections))
			<-result
			hq.WaitClosed()

			want, got := namings(t, captured(c)), namings(t, hq.DataBytes())
			require.Len(t, got, len(want))
			for name, numbers := range want {
				around := got[name]
				if len(numbers) < 3 {
					around = around[max(0, len(around)-len(numbers)):]
				}
				assert.Equal(t, numbers, around, "%q", name)
			}
		})
	}
}

// numbers returns the sequence numbers of call events and markers in the order of each connection.
func numbers(list []string) []uint32 {
	var found []uint32
	for _, m := range list {
		if kind := bytefrog.MessageType(m[0]); kind.IsEvent() || kind == bytefrog.TypeMarker {
			found = append(found, binary.BigEndian.Uint32([]byte(m[5:9])))
		}
	}
	return found
}

// withoutGap checks that the numbers are 0 to n-1, each once.
func withoutGap(t *testing.T, found []uint32, n uint64) {
	t.Helper()
	slices.Sort(found)
	require.Len(t, found, int(n))
	for i, number := range found {
		if uint32(i) != number {
			t.Fatalf("expected number %d, got %d", i, number)
		}
	}
}

func TestARepeatedReplayContinuesNumbersAndTimes(t *testing.T) {
	_, r := open(t, "suspend")
	hq := hqtest.New(t)
	program := replay.New(r, replay.Options{Repeat: 3})
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: hq.Endpoint()}, program)
	result := make(chan bytefrogagent.Result, 1)
	go func() { result <- agent.Run(context.Background()) }()
	hq.Begin(configuration(1))
	got := <-result
	hq.WaitClosed()

	assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
	list := messages(t, hq.DataBytes())
	withoutGap(t, numbers(list), program.Events())
	assert.Equal(t, 3*r.Events(), program.Events())
	n := uint32(r.Events())
	assert.Equal(t, []uint32{13322, 28180, n, n + 13322, n + 28180, 2 * n, 2*n + 13322, 2*n + 28180}, breaks(hq.ControlMessages()))
	assert.Equal(t, 33, classes(hq.ControlMessages()))
	var last [3]uint32
	for _, m := range list {
		if bytefrog.MessageType(m[0]).IsEvent() {
			round := binary.BigEndian.Uint32([]byte(m[5:9])) / n
			last[round] = max(last[round], binary.BigEndian.Uint32([]byte(m[1:5])))
		}
	}
	assert.Equal(t, 2*last[0]+1, last[1])
	assert.Equal(t, 3*last[0]+2, last[2])
}

func TestAtFullSpeedASuspendedReplayStandsStill(t *testing.T) {
	for _, shuffle := range []bool{false, true} {
		if testing.Short() && shuffle {
			continue
		}
		t.Run(fmt.Sprintf("shuffled %v", shuffle), func(t *testing.T) {
			c, r := open(t, "maven")
			hq := hqtest.New(t)
			program := replay.New(r, replay.Options{Shuffle: shuffle, Seed: 9, Window: 64})
			agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: hq.Endpoint()}, program)
			result := make(chan bytefrogagent.Result, 1)
			go func() { result <- agent.Run(context.Background()) }()
			hq.StopReading(true)
			hq.Begin(configuration(1))
			// The sockets must hold fewer bytes than the capture has.
			for n := 1; n <= 2; n++ {
				hq.ReadMore(50000)
				hq.Order(bytefrog.TypeSuspend)
				first := hq.WaitBreak(n)
				hq.StopReading(false)
				hq.WaitEvents(int(first.Sequence))
				withoutGap(t, numbers(messages(t, hq.DataBytes())), uint64(first.Sequence))
				hq.StopReading(true)
				hq.Order(bytefrog.TypeUnsuspend)
			}
			hq.StopReading(false)
			got := <-result
			hq.WaitClosed()
			assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
			assert.True(t, slices.Equal(sorted(messages(t, captured(c))), sorted(messages(t, hq.DataBytes()))), "the messages differ")
		})
	}
}

func TestWithASpeedASuspendedReplayRunsOnUnseen(t *testing.T) {
	c, r := open(t, "suspend")
	hq := hqtest.New(t)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: hq.Endpoint()}, replay.New(r, replay.Options{Speed: 5}))
	result := make(chan bytefrogagent.Result, 1)
	go func() { result <- agent.Run(context.Background()) }()
	hq.Begin(configuration(2))
	hq.WaitBytes(100000)
	hq.Order(bytefrog.TypeSuspend)
	hq.Wait("mode suspended", func(control []bytefrog.Message, _ [][]byte) bool {
		beat, ok := control[len(control)-1].(bytefrog.Heartbeat)
		return ok && beat.Mode == bytefrog.ModeSuspended
	})
	heartbeats := agent.Stats().Heartbeats
	hq.Wait("some time to pass", func([]bytefrog.Message, [][]byte) bool { return agent.Stats().Heartbeats > heartbeats+5 })
	hq.Order(bytefrog.TypeUnsuspend)
	got := <-result
	hq.WaitClosed()
	require.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)

	all, seen := messages(t, captured(c)), sorted(messages(t, hq.DataBytes()))
	left := uint32(r.Events() - got.Stats.Events)
	assert.Greater(t, left, uint32(100), "calls were omitted")
	withoutGap(t, numbers(seen), got.Stats.Events)
	// The calls are omitted at one of the breaks.
	reported := breaks(hq.ControlMessages())
	at := slices.IndexFunc(reported, func(first uint32) bool { return slices.Equal(sorted(leaveOut(all, first, left)), seen) })
	require.GreaterOrEqual(t, at, 0, "the messages differ, at whichever of the breaks %v they are omitted", reported)
	// The capture's own breaks keep their position, in the new numbers.
	for _, own := range []uint32{13322, 28180} {
		switch first := reported[at]; {
		case own <= first:
			assert.Contains(t, reported, own)
		case own > first+left:
			assert.Contains(t, reported, own-left)
		}
	}
}

// leaveOut returns the messages without `left` numbers from first on, and with lower numbers after them.
func leaveOut(all []string, first, left uint32) []string {
	var rest []string
	for _, m := range all {
		if !bytefrog.MessageType(m[0]).IsEvent() {
			rest = append(rest, m)
			continue
		}
		b := []byte(m)
		number := binary.BigEndian.Uint32(b[5:9])
		switch {
		case number < first:
		case number < first+left:
			continue
		default:
			binary.BigEndian.PutUint32(b[5:9], number-left)
		}
		rest = append(rest, string(b))
	}
	return rest
}

func TestAnInvalidCaptureIsRefused(t *testing.T) {
	whole, _ := open(t, "shop")
	for want, damage := range map[string]func(c *capture.Capture){
		"data-1.bin: from byte": func(c *capture.Capture) {
			c.Data[1] = slices.Clone(c.Data[1])
			c.Data[1][2] = 77
		},
		"expected a whole":    func(c *capture.Capture) { c.Data[0] = c.Data[0][:len(c.Data[0])-1] },
		"expected data hello": func(c *capture.Capture) { c.Data[0] = c.Data[0][2:] },
		"expected hello":      func(c *capture.Capture) { c.Control = c.Control[2:] },
		"at least one call event": func(c *capture.Capture) {
			for i := range c.Data {
				c.Data[i] = c.Data[i][:2]
			}
		},
	} {
		c := &capture.Capture{Control: whole.Control, Data: slices.Clone(whole.Data), Index: whole.Index}
		damage(c)
		_, err := replay.Load(c)
		assert.ErrorContains(t, err, want)
	}
}

func TestTimesOfAFastReplayDoNotRunFarAheadOfTheClock(t *testing.T) {
	_, r := open(t, "suspend")
	hq := hqtest.New(t)
	program := replay.New(r, replay.Options{Repeat: 30})
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: hq.Endpoint()}, program)
	result := make(chan bytefrogagent.Result, 1)
	begin := time.Now()
	go func() { result <- agent.Run(context.Background()) }()
	hq.Begin(configuration(2))
	got := <-result
	took := time.Since(begin)
	hq.WaitClosed()
	require.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)

	times := make([]uint32, program.Events())
	for _, m := range messages(t, hq.DataBytes()) {
		if bytefrog.MessageType(m[0]).IsEvent() {
			times[binary.BigEndian.Uint32([]byte(m[5:9]))] = binary.BigEndian.Uint32([]byte(m[1:5]))
		}
	}
	last := uint32(0)
	for number := uint64(0); number < program.Events(); number += r.Events() {
		round := times[number : number+r.Events()]
		require.GreaterOrEqual(t, slices.Min(round), last, "the round from number %d", number)
		last = slices.Max(round)
	}
	ahead := time.Duration(last)*time.Millisecond - took
	assert.Less(t, ahead, 15*time.Second, "10 s, and one round")
	assert.Greater(t, time.Duration(times[2*r.Events()-1])*time.Millisecond, r.Duration(), "the second round is compressed")
}
