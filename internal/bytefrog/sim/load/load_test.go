// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/hqtest"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is a call that the slow pairing below finds: a call as in load.Truth, with names.
type seen struct {
	thread, function, exception string
	entry, exit                 uint64
	parent                      int64 // entry of the parent, or -1
	throws                      []string
	truncated                   bool
}

// paired is the result of a slow and simple pairing of received data.
type paired struct {
	calls   []seen
	orphans int
	events  uint64
}

// pair reads the messages of all connections in the order of their numbers. A missing number, a data break, and a time
// that differs by minutes from the previous one empty all stacks.
func pair(t *testing.T, data [][]byte, control []bytefrog.Message) paired {
	t.Helper()
	methods, exceptions, threads := map[uint32]string{}, map[uint32]string{}, map[uint16]string{}
	events := map[uint32]bytefrog.Event{}
	markers := map[uint32]bool{}
	highest := uint32(0)
	for _, b := range data {
		for len(b) > 0 {
			var one [1]bytefrog.Event
			if n, size := bytefrog.DecodeEvents(one[:], b); n == 1 {
				events[one[0].Sequence] = one[0]
				highest = max(highest, one[0].Sequence)
				b = b[size:]
				continue
			}
			m, size, err := bytefrog.DecodeData(b, bytefrog.MaxString)
			require.NoError(t, err)
			require.NotZero(t, size)
			b = b[size:]
			switch m := m.(type) {
			case bytefrog.MapMethod:
				methods[m.Method] = bytefrog.ParseMethodSignature(m.Signature).Qualified
			case bytefrog.MapException:
				exceptions[m.Exception] = m.Name
			case bytefrog.MapThreadName:
				threads[m.Thread] = m.Name
			case bytefrog.Marker:
				markers[m.Sequence] = true
				highest = max(highest, m.Sequence)
			}
		}
	}
	breaks := map[uint32]bool{}
	for _, m := range control {
		if b, ok := m.(bytefrog.DataBreak); ok {
			breaks[b.Sequence] = true
		}
	}
	var p paired
	p.events = uint64(len(events) + len(markers))
	stacks := map[uint16][]int{}
	truncate := func() {
		for thread, stack := range stacks {
			for _, call := range stack {
				p.calls[call].truncated = true
			}
			delete(stacks, thread)
		}
	}
	var last uint32
	for number := uint32(0); number <= highest; number++ {
		e, ok := events[number]
		const minute = 60_000
		isFar := ok && (int32(e.Time-last) > minute || int32(e.Time-last) < -minute)
		if breaks[number] || isFar || !ok && !markers[number] {
			truncate()
		}
		if ok {
			last = e.Time
		}
		if !ok {
			continue
		}
		stack := stacks[e.Thread]
		if e.Type == bytefrog.TypeMethodEntry {
			call := seen{thread: threads[e.Thread], function: methods[e.Method], entry: uint64(number), parent: -1}
			if len(stack) > 0 {
				call.parent = int64(p.calls[stack[len(stack)-1]].entry)
			}
			stacks[e.Thread] = append(stack, len(p.calls))
			p.calls = append(p.calls, call)
			continue
		}
		if len(stack) == 0 {
			p.orphans++
			continue
		}
		top := &p.calls[stack[len(stack)-1]]
		require.Equal(t, methods[e.Method], top.function, "number %d does not belong to the top of the stack", number)
		switch e.Type {
		case bytefrog.TypeException:
			top.throws = append(top.throws, exceptions[e.Exception])
			continue
		case bytefrog.TypeExceptionBubble:
			top.exception = exceptions[e.Exception]
		}
		top.exit = uint64(number)
		stacks[e.Thread] = stack[:len(stack)-1]
	}
	truncate()
	return p
}

// expected returns the truth in the form of the pairing.
func expected(truth load.Truth) paired {
	p := paired{orphans: truth.Orphans, events: truth.Events}
	for _, c := range truth.Calls {
		s := seen{
			thread:    load.ThreadName(c.Thread),
			function:  load.FunctionName(c.Function),
			entry:     c.Entry,
			exit:      c.Exit,
			parent:    -1,
			truncated: c.Truncated != "",
		}
		if c.Parent >= 0 {
			s.parent = int64(truth.Calls[c.Parent].Entry)
		}
		if c.Exception >= 0 {
			s.exception = load.ExceptionName(c.Exception)
		}
		for _, exception := range c.Throws {
			s.throws = append(s.throws, load.ExceptionName(exception))
		}
		p.calls = append(p.calls, s)
	}
	slices.SortFunc(p.calls, func(a, b seen) int { return cmp.Compare(a.entry, b.entry) })
	return p
}

func configuration(connections int32) bytefrog.AgentConfiguration {
	return bytefrog.AgentConfiguration{
		RunID:              1,
		HeartbeatInterval:  20 * time.Millisecond,
		BufferMemoryBudget: 1 << 20,
		QueueRetryCount:    10,
		DataConnections:    connections,
	}
}

// run runs a program against an HQ that executes script.
func run(t *testing.T, o load.Options, connections int32, script func(hq *hqtest.HQ)) (*load.Program, *hqtest.HQ, bytefrogagent.Result) {
	t.Helper()
	hq := hqtest.New(t)
	return runAt(t, o, connections, hq, bytefrogagent.Options{Endpoint: hq.Endpoint()}, script)
}

func runAt(t *testing.T, o load.Options, connections int32, hq *hqtest.HQ, options bytefrogagent.Options, script func(hq *hqtest.HQ)) (*load.Program, *hqtest.HQ, bytefrogagent.Result) {
	t.Helper()
	p, err := load.New(o)
	require.NoError(t, err)
	agent := bytefrogagent.New(options, p)
	result := make(chan bytefrogagent.Result, 1)
	go func() { result <- agent.Run(context.Background()) }()
	hq.Begin(configuration(connections))
	script(hq)
	got := <-result
	hq.WaitClosed()
	return p, hq, got
}

func check(t *testing.T, p *load.Program, hq *hqtest.HQ, got bytefrogagent.Result) paired {
	t.Helper()
	require.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
	want, found := expected(p.Truth()), pair(t, hq.DataBytes(), hq.ControlMessages())
	assert.Equal(t, want.orphans, found.orphans, "orphans")
	assert.Equal(t, want.events, found.events, "events")
	assert.Equal(t, got.Stats.Events, found.events, "events")
	require.Len(t, found.calls, len(want.calls))
	for i := range want.calls {
		if !reflect.DeepEqual(want.calls[i], found.calls[i]) {
			require.Equal(t, want.calls[i], found.calls[i])
		}
	}
	return found
}

func TestTheTruthEqualsTheResultOfASlowPairing(t *testing.T) {
	for name, o := range map[string]load.Options{
		"returns only":        {Events: 20000},
		"one thread, depth 1": {Events: 5000, Threads: 1, Depth: 1, Exceptions: 0.5},
		"exceptions":          {Events: 20000, Exceptions: 0.3},
		"every return fails":  {Events: 5000, Exceptions: 1},
		"markers":             {Events: 20000, Markers: 0.2},
		"suspended":           {Events: 20000, Suspends: 7, Exceptions: 0.1, Markers: 0.05},
		"loss":                {Events: 60000, Loss: 0.1, Exceptions: 0.1, Functions: 50},
		"clock steps":         {Events: 20000, ClockSteps: 5, Exceptions: 0.1},
		"everything":          {Events: 60000, Threads: 100, Depth: 5, Loss: 0.05, Exceptions: 0.1, Markers: 0.1, Suspends: 20, ClockSteps: 9, Functions: 30},
	} {
		for seed, connections := range []int32{1, 3} {
			t.Run(fmt.Sprintf("%s, %d connections", name, connections), func(t *testing.T) {
				o.Seed, o.Record = uint64(seed), true
				if testing.Short() {
					o.Events = min(o.Events, 20_000)
				}
				p, hq, got := run(t, o, connections, func(*hqtest.HQ) {})
				found := check(t, p, hq, got)
				assert.GreaterOrEqual(t, p.Made(), o.Events)
				truncated := slices.ContainsFunc(found.calls, func(c seen) bool { return c.truncated })
				assert.Equal(t, o.Loss > 0 || o.Suspends > 0 || o.ClockSteps > 0, truncated, "only loss, suspension and a clock step truncate calls")
			})
		}
	}
}

func TestTheTruthIncludesSuspensionsByTheHQ(t *testing.T) {
	// The sockets must not hold all events while the HQ does not read.
	events := uint64(800_000)
	if testing.Short() {
		events /= 2
	}
	p, hq, got := run(t, load.Options{Events: events, Exceptions: 0.1, Record: true}, 1, func(hq *hqtest.HQ) {
		for n := 1; n <= 2; n++ {
			hq.ReadMore(50000)
			hq.Order(bytefrog.TypeSuspend)
			hq.WaitBreak(n)
			hq.Order(bytefrog.TypeUnsuspend)
		}
		hq.StopReading(false)
	})
	check(t, p, hq, got)
	assert.Len(t, p.Truth().Breaks, 2)
}

func TestTheSameSeedMakesTheSameCalls(t *testing.T) {
	o := load.Options{Events: 50000, Exceptions: 0.1, Markers: 0.1, Loss: 0.1, Suspends: 3, Seed: 5, Record: true}
	first, _, _ := run(t, o, 1, func(*hqtest.HQ) {})
	second, _, _ := run(t, o, 4, func(*hqtest.HQ) {})
	assert.Equal(t, first.Truth().Orphans, second.Truth().Orphans)
	assert.True(t, reflect.DeepEqual(first.Truth().Calls, second.Truth().Calls), "another run by the same seed")
	o.Seed++
	third, _, _ := run(t, o, 1, func(*hqtest.HQ) {})
	assert.False(t, reflect.DeepEqual(first.Truth().Calls, third.Truth().Calls), "a run by another seed")
}

func TestALoadRunHasTheConfiguredRateAndDuration(t *testing.T) {
	// In simulated time no pause of the machine delays the program.
	synctest.Test(t, func(t *testing.T) {
		network, begin := hqtest.NewPipes(), time.Now()
		p, hq, got := runAt(t, load.Options{Rate: 20000, Duration: 500 * time.Millisecond, Record: true}, 1,
			hqtest.NewAt(t, network), bytefrogagent.Options{Dial: network.Dial}, func(*hqtest.HQ) {})
		check(t, p, hq, got)
		assert.InDelta(t, 500*time.Millisecond, time.Since(begin), float64(50*time.Millisecond))
		assert.InDelta(t, 10000, p.Made(), 200)
	})
}

func TestErrorsNameInvalidOptions(t *testing.T) {
	for want, o := range map[string]load.Options{
		"threads":     {Threads: -1},
		"depth":       {Depth: -1},
		"functions":   {Functions: -1},
		"rate":        {Rate: -1},
		"duration":    {Duration: -1},
		"exceptions":  {Exceptions: 1.1},
		"markers":     {Markers: 1},
		"loss":        {Loss: -0.1},
		"suspends":    {Suspends: 1},
		"clock-steps": {ClockSteps: 1},
	} {
		_, err := load.New(o)
		assert.ErrorContains(t, err, want+": expected")
	}
}

func BenchmarkMakeEvents(b *testing.B) {
	for name, o := range map[string]load.Options{
		"calls":              {},
		"exceptions,markers": {Exceptions: 0.01, Markers: 0.01},
	} {
		b.Run(name, func(b *testing.B) {
			o.Events = uint64(b.N)
			p, err := load.New(o)
			require.NoError(b, err)
			b.ReportAllocs()
			b.ResetTimer()
			require.NoError(b, p.Run(bytefrogagent.Nowhere(bytefrogagent.DefaultBufferSize)))
			b.ReportMetric(float64(p.Made())/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
