// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

func TestInvalidDataEndsTheRunButDropsNoEarlierEvents(t *testing.T) {
	good := append(namesOne(), calls(0, 50)...)
	cases := map[string]struct {
		bytes         []byte
		inside        int
		expected, got string
	}{
		"an unknown type": {[]byte{77}, 0, "a message of a data connection", "message type 77"},
		"a heartbeat":     {encode(bytefrog.Heartbeat{Mode: 'T'}), 0, "a message of a data connection", "heartbeat (8)"},
		"visits":          {[]byte{14, 0, 0}, 0, "a message of a data connection", "method visit (14)"},
		"a signature longer than allowed": {
			encode(bytefrog.MapMethod{Method: 2, Signature: string(make([]byte, 3000))}), 5, "a string of at most 1024 bytes", "6000"},
		"a number that cannot be": {calls(1<<31+100, 1), 5, "a sequence number of the run", "sequence number 2147483748 where 100 is next"},
		"a marker with a number that cannot be": {
			encode(bytefrog.Marker{Sequence: 1<<31 + 100}), 5, "a sequence number of the run", "sequence number 2147483748 where 100 is next"},
		"silence inside a message": {[]byte{21, 1, 2}, 3, "the rest of method exit within 50ms", "nothing more"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, quickly, impatiently, func(b *bed, c *Config) {
				c.Limits.MaxMessageSize = 1024
				c.MissedHeartbeats = 1000
			})
			a := connect(b, 1)
			bad, _ := a.join(), a.join()
			bad.write(good)
			b.Await("events", func() bool { return b.receiver.env.registry.lookup(1).State().Events == 100 })
			bad.write(c.bytes)
			text := a.control.expectError()
			assert.Contains(t, text, c.got)
			a.expectToLinger(b, 3)

			lines := b.Log.FilterLevelExact(zapcore.WarnLevel).All()
			require.Len(t, lines, 1)
			said := lines[0].ContextMap()["error"].(string)
			assert.Contains(t, said, fmt.Sprintf("%s, byte %d: expected ", bad.conn.LocalAddr(), helloBytes+len(good)+c.inside))
			assert.Contains(t, said, c.expected)
			assert.Contains(t, said, c.got)

			s := b.only()
			assert.Len(t, s.events, 100)
			assert.Equal(t, []callevent.Barrier{callevent.Point(100, callevent.CauseBadData)}, s.breaks())
			assert.Equal(t, callevent.End(100, callevent.CauseBadData), s.end(t))
			assert.EqualValues(t, 1, b.Counter("bad_data"))
		})
	}
}

// boundaries are the offsets in data at which a message begins.
func boundaries(t *testing.T, data []byte) (offsets []int, events []int) {
	t.Helper()
	var one [1]bytefrog.Event
	seen := 0
	for at := helloBytes; at < len(data); {
		offsets, events = append(offsets, at), append(events, seen)
		n, used := bytefrog.DecodeEvents(one[:], data[at:])
		if n == 0 {
			var err error
			_, used, err = bytefrog.DecodeData(data[at:], bytefrog.MaxString)
			require.NoError(t, err)
		}
		at, seen = at+used, seen+n
	}
	return offsets, events
}

func TestWhereverDataIsBadAllBeforeItIsDelivered(t *testing.T) {
	data := openCapture(t, "shop").Data[0]
	offsets, events := boundaries(t, data)
	times := 25
	if testing.Short() {
		times = 4
	}
	for i := 0; i < len(offsets); i += 1 + len(offsets)/times {
		t.Run(fmt.Sprintf("byte %d", offsets[i]), func(t *testing.T) {
			b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.NameWait = time.Millisecond })
			a := connect(b, 1)
			p := a.join()
			p.write(append(append([]byte{}, data[helloBytes:offsets[i]]...), 200))
			assert.Contains(t, a.control.expectError(), fmt.Sprintf("byte %d:", offsets[i]))
			b.awaitRuns(0)
			assert.Len(t, b.only().events, events[i])
		})
	}
}

func TestADataConnectionMayBeSilentBetweenMessages(t *testing.T) {
	b := newBed(t, quickly, impatiently, withDataConnections(1), func(_ *bed, c *Config) { c.MissedHeartbeats = 1000 })
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 1)...))
	run := b.receiver.env.registry.lookup(1)
	b.Await("the first batch, and more than a message may take", func() bool {
		return len(b.streams()) == 1 && time.Since(run.State().Opened) > 4*b.receiver.env.config.Limits.MessageTimeout
	})
	p.write(calls(2, 1))
	b.Await("more events", func() bool { return b.events() == 4 })
	a.finish()
	b.awaitRuns(0)
	assert.Equal(t, callevent.CauseEnded, b.only().end(t).Cause)
}

func TestAnAgentThatIsKilledInTheMiddleOfAMessage(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	p.write(append(append(namesOne(), calls(0, 50)...), 20, 0, 0))
	other.write(calls(100, 50))
	b.Await("events", func() bool { return b.receiver.env.registry.lookup(1).State().Events == 200 })
	p.close()
	other.close()
	a.control.close()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 200)
	assert.Equal(t, callevent.End(200, callevent.CauseDisconnected), s.end(t))
}

func TestALostDataConnectionEndsTheRun(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p := a.join()
	p.write(append(append(namesOne(), calls(0, 50)...), 20, 0, 0))
	p.close()
	assert.Contains(t, a.control.expectError(), "the end of the connection")
	a.expectToLinger(b, 1)
	s := b.only()
	assert.Len(t, s.events, 100)
	assert.Equal(t, []callevent.Barrier{callevent.Point(100, callevent.CauseDisconnected)}, s.breaks())
}

func TestControlMayEndBeforeTheData(t *testing.T) {
	b := newBed(t, quickly, func(b *bed, _ *Config) { b.timing.Quiet = 2 * time.Second })
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	a.control.close()
	run := b.receiver.env.registry.lookup(1)
	b.Await("the end of control", func() bool { return run.State().Leaving })
	// Not even all data connections have come yet.
	late := a.join()
	late.write(calls(100, 50))
	p.write(calls(200, 50))
	p.close()
	late.close()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 300)
	assert.Equal(t, callevent.End(300, callevent.CauseEnded), s.end(t))
}

func TestMarkersAreNumbersThatAreNoCallAndLogRecords(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 1)...))
	p.send(bytefrog.Marker{Time: 40, Sequence: 2, Key: "checkout", Value: "größer"})
	p.write(calls(3, 1))
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	require.Len(t, s.events, 5)
	assert.Equal(t, callevent.KindSkip, s.events[2].kind)
	assert.Equal(t, callevent.KindEnter, s.events[3].kind)
	b.Await("log records", func() bool { return b.logEvents()[eventMarker] == 1 })
}

func TestNumbersAndTimesTurn(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(namesOne())
	const step = 1 << 29
	const events = 20 // More than two turns.
	var bytes []byte
	for i := range uint32(events) {
		bytes = bytefrog.AppendEvent(bytes, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Sequence: i * step, Time: i * step, Method: 1, Thread: 1})
	}
	// One by one: nothing in a chunk is as far from the last as that.
	for i := 0; i < len(bytes); i += bytefrog.MethodEntrySize {
		p.write(bytes[i : i+bytefrog.MethodEntrySize])
		want := uint64(i/bytefrog.MethodEntrySize)*step + 1
		b.Await("an event", func() bool { return b.receiver.env.registry.lookup(1).State().Next == want })
	}
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	epoch := s.times[0]
	require.Len(t, s.events, events)
	for i := range uint64(events) {
		assert.Equal(t, epoch+int64(i)*step*int64(time.Millisecond), s.times[i*step])
	}
}

func TestTwoRunsNeverShareACallStream(t *testing.T) {
	b := newBed(t, quickly)
	var agents []*agent
	for range 10 {
		a := connect(b, 1)
		p := a.join()
		p.write(append(namesOne(), calls(0, 100)...))
		agents = append(agents, a)
	}
	for _, a := range agents {
		a.finish()
	}
	b.awaitRuns(0)
	streams := b.streams()
	assert.Len(t, streams, len(agents))
	for _, s := range streams {
		assert.Len(t, s.events, 200)
		assert.Empty(t, s.twice)
	}
}

func TestWithoutAPipelineForTracesAgentsAreReadAllTheSame(t *testing.T) {
	b := newBed(t, quickly, withoutTraces, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 100)...))
	p.send(bytefrog.Marker{Sequence: 200, Key: "k", Value: "v"})
	a.finish()
	b.awaitRuns(0)
	b.Await("log records", func() bool { return b.logEvents()[eventMarker] == 1 })
	assert.EqualValues(t, 201, b.Counter("events"))
}

func TestWithoutAPipelineForTracesNumbersTurnAsWell(t *testing.T) {
	b := newBed(t, quickly, withoutTraces, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	run := b.receiver.env.registry.lookup(1)
	const step = 1 << 30
	for i := range uint64(9) { // More than two turns.
		p.write(calls(uint32(i*step), 1))
		b.Await("the next number", func() bool { return run.State().Next == i*step+2 })
	}
	p.send(bytefrog.Marker{Sequence: 3, Key: "k", Value: "v"})
	a.control.send(bytefrog.DataBreak{Sequence: 4})
	b.Await("the break", func() bool { return run.State().Breaks[callevent.CauseSuspended] == 1 })
	a.finish()
	b.awaitRuns(0)
	b.Await("log records", func() bool { return b.logEvents()[eventMarker] == 1 })
	assert.Zero(t, b.Counter("bad_data"))
	assert.Equal(t, uint64(8*step+4), run.State().Next)
}
