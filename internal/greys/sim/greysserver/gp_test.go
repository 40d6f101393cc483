// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// monitored sums the counts of a monitor's cycles.
type monitored struct {
	mu       sync.Mutex
	counts   Counts
	affected javamethods.Affected
	cycles   int
}

func (h *monitored) reply(r javamethods.Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r := r.(type) {
	case *javamethods.Affected:
		h.affected = *r
	case *javamethods.Statistics:
		h.cycles++
		for _, m := range r.Methods {
			if m.Calls > 0 {
				h.counts.add(MethodName{m.Class, m.Method}, Count{Calls: m.Calls, Failed: m.Failed})
			}
		}
	}
}

// calls returns the counts without times.
func calls(of Counts) Counts {
	without := Counts{}
	for name, c := range of {
		if c.Calls > 0 {
			without[name] = Count{Calls: c.Calls, Failed: c.Failed}
		}
	}
	return without
}

// count returns the number of received cycles.
func (h *monitored) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cycles
}

func (h *monitored) all() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return calls(h.counts)
}

func TestAMonitorReportsEveryCall(t *testing.T) {
	p := play(t, Options{Program: ProgramOptions{Rate: 5000, Calls: 5000, Failures: 0.1, Seed: 3}, Speed: 50})
	c, _ := p.client(gp.Config{})
	ctx, end := context.WithCancel(t.Context())
	h := &monitored{counts: Counts{}}
	over := make(chan error, 1)
	go func() {
		over <- c.Run(ctx, javamethods.MonitorCommand{Target: target(t, "*", "*"), Cycle: time.Second}, h.reply)
	}()
	eventually(t, func() bool { return p.truth().Rests }, "the program has made all calls")
	rested := h.count()
	eventually(t, func() bool { return h.count() > rested+1 }, "a cycle that began after the calls")
	truth := p.truth()
	assert.Equal(t, calls(truth.Reported), h.all())
	assert.Greater(t, truth.Reported.Sum().Calls, int64(2000))
	end()
	require.ErrorIs(t, <-over, context.Canceled)
	assert.Equal(t, javamethods.Affected{Classes: 10, Methods: 100}, h.affected)
	assert.Greater(t, p.truth().Made.Sum().Calls, int64(2000), "callees count")
	assert.Equal(t, int64(10), p.truth().Enhanced)

	var reset javamethods.Affected
	require.NoError(t, c.Run(t.Context(), javamethods.ResetCommand{Class: pattern(t, "com.example.shop.Service?")}, func(r javamethods.Reply) { reset = *r.(*javamethods.Affected) }))
	assert.Equal(t, javamethods.Affected{Rows: 10}, reset)
	truth = p.truth()
	assert.Zero(t, truth.Enhanced)
	assert.Equal(t, int64(10), truth.Resets)
}

func TestProgramsWithTheSameSeedAreEqual(t *testing.T) {
	made := func(seed uint64) Counts {
		p := play(t, Options{Program: ProgramOptions{Rate: 1e6, Calls: 500, Failures: 0.2, Seed: seed}})
		eventually(t, func() bool { return p.truth().Rests }, "the program has made all calls")
		return p.truth().Made
	}
	one := made(1)
	assert.Equal(t, one, made(1))
	assert.NotEqual(t, one, made(2))
	all := one.Sum()
	assert.Greater(t, all.Calls, int64(500))
	assert.InDelta(t, 0.2, float64(all.Failed)/float64(all.Calls), 0.1)
	assert.NotZero(t, all.Time)
}

func TestEveryCommandIsAnswered(t *testing.T) {
	codes := gp.UsualCodes()
	for _, style := range []gp.Style{gp.Documented, gp.Typed, gp.Sloppy} {
		p := play(t, Options{Program: ProgramOptions{Rate: 2000, RecordEvery: 10, Failures: 0.5}, Codes: codes, Style: style, ProcessID: 79321})
		c, _ := p.client(gp.Config{Codes: codes})
		ask := func(command javamethods.Command) (replies []javamethods.Reply) {
			require.NoError(t, c.Run(t.Context(), command, func(r javamethods.Reply) { replies = append(replies, r) }))
			return replies
		}
		assert.Equal(t, []javamethods.Reply{&javamethods.Version{Text: "1.7.6.6"}}, ask(javamethods.VersionCommand{}))
		sessions := ask(javamethods.SessionsCommand{})[0].(*javamethods.Sessions)
		assert.Equal(t, int64(79321), sessions.ProcessID)
		assert.Equal(t, p.address, sessions.Sessions[0].To)
		assert.Len(t, ask(javamethods.ClassesCommand{Class: pattern(t, "*.Service[1-3]"), Regexp: false}), 0)
		assert.Empty(t, ask(javamethods.ClassesCommand{Class: pattern(t, ".*.Service1"), Regexp: true})[0].(*javamethods.Class).Fields)
		assert.Len(t, ask(javamethods.ClassesCommand{Class: pattern(t, ".*.Service[1-3]"), Regexp: true, Fields: true}), 3)
		methods := ask(javamethods.MethodsCommand{Target: target(t, "*Service1", "*")})
		assert.Len(t, methods, 10)
		assert.Equal(t, "com.example.shop.Service1", methods[9].(*javamethods.Method).Class)
		stacks := ask(javamethods.StackCommand{Target: target(t, "*", "*"), Limit: 5})
		assert.Len(t, stacks, 5)
		eventually(t, func() bool { return len(ask(javamethods.RecordsCommand{})) > 2 }, "calls are recorded")
		records := ask(javamethods.RecordsCommand{})
		index := records[1].(*javamethods.Record).Index
		assert.Equal(t, int64(firstRecord+1), index)
		detail := ask(javamethods.RecordDetailCommand{Index: index})[0].(*javamethods.RecordDetail)
		assert.Equal(t, *records[1].(*javamethods.Record), detail.Record)
		err := c.Run(t.Context(), javamethods.RecordDetailCommand{Index: 1}, nil)
		require.ErrorIs(t, err, javamethods.ErrRefused)
		require.ErrorContains(t, err, "Time fragment[1] does not exist.")
		assert.Equal(t, style == gp.Sloppy, c.Stats().Tolerated > 0)
	}
}

func TestAServerWithoutCodesDoesNotKnowThem(t *testing.T) {
	p := play(t, Options{})
	c, _ := p.client(gp.Config{Codes: gp.UsualCodes()})
	require.ErrorIs(t, c.Run(t.Context(), javamethods.SessionsCommand{}, nil), javamethods.ErrUnsupported)
	require.ErrorContains(t, c.Run(t.Context(), javamethods.SessionsCommand{}, nil), "return code 0x12")
}

func TestAResetEndsOtherCommandsOnTheClass(t *testing.T) {
	p := play(t, Options{Program: ProgramOptions{Rate: 2000}, Speed: 50})
	c, _ := p.client(gp.Config{})
	all, one := &monitored{counts: Counts{}}, MethodName{"com.example.shop.Service1", "operation1"}
	ctx, end := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- c.Run(ctx, javamethods.MonitorCommand{Target: target(t, "*", "*"), Cycle: time.Second}, all.reply)
	}()
	eventually(t, func() bool { return all.all()[one].Calls > 0 }, "calls of the class are reported")
	require.NoError(t, c.Run(t.Context(), javamethods.ResetCommand{Class: pattern(t, one.Class)}, func(javamethods.Reply) {}))
	after := all.count()
	eventually(t, func() bool { return all.count() > after+1 }, "a cycle that began after the reset")
	before, others := all.all()[one].Calls, all.all().Sum().Calls
	eventually(t, func() bool { return all.all().Sum().Calls > others+1000 }, "calls of other classes are reported")
	assert.Equal(t, before, all.all()[one].Calls)
	end()
	require.ErrorIs(t, <-over, context.Canceled)
}

func TestARestartBeginsAnotherProcess(t *testing.T) {
	p := play(t, Options{Codes: gp.UsualCodes(), ProcessID: 100})
	processID := func(c *gp.Client) (id int64) {
		require.NoError(t, c.Run(t.Context(), javamethods.SessionsCommand{}, func(r javamethods.Reply) { id = r.(*javamethods.Sessions).ProcessID }))
		return id
	}
	c, served := p.client(gp.Config{Codes: gp.UsualCodes()})
	assert.Equal(t, int64(100), processID(c))
	p.Restart()
	require.ErrorIs(t, served(), gp.ErrClosed)
	c, _ = p.client(gp.Config{Codes: gp.UsualCodes()})
	assert.Equal(t, int64(101), processID(c))
	assert.Len(t, p.Lives(), 2)
}

func TestAServerOfBothProtocolsIsProbed(t *testing.T) {
	for protocol, want := range map[Protocol]gp.Speaks{Both: gp.SpeaksGP, GP: gp.SpeaksGP, Console: gp.SpeaksNothing} {
		p := play(t, Options{Protocol: protocol})
		probed, err := gp.Probe(t.Context(), p.dial(), gp.Config{ProbeTimeout: time.Second})
		require.NoError(t, err)
		assert.Equal(t, want, probed.Speaks, protocol)
	}
}

func TestEachFaultOfGPHasItsEffect(t *testing.T) {
	for fault, tt := range map[Fault]struct {
		// is and text describe the error that ends the monitor; counted is the count of a fault that does not end it.
		is      error
		text    string
		counted func(gp.Stats) uint64
	}{
		Close:        {is: gp.ErrClosed},
		Cut:          {is: gp.ErrClosed, text: "inside a reply"},
		Restart:      {is: gp.ErrClosed},
		Silence:      {is: gp.ErrSilent},
		Failure:      {is: javamethods.ErrRefused, text: "return code 0x10"},
		UnknownCode:  {is: javamethods.ErrRefused, text: "return code 0x7f"},
		Unsupported:  {is: javamethods.ErrUnsupported},
		WrongVersion: {text: "return code 0x11"},
		LongFrame:    {text: "expected a length of at most"},
		WrongLength:  {text: "GP server"},
		Unasked:      {counted: func(s gp.Stats) uint64 { return s.Unasked }},
		BrokenData:   {counted: func(s gp.Stats) uint64 { return s.Dropped }},
		Gap:          {counted: func(s gp.Stats) uint64 { return s.Gaps }},
	} {
		t.Run(string(fault), func(t *testing.T) {
			p := play(t, Options{Program: ProgramOptions{Rate: 1000}, Speed: 100, Faults: []Fault{fault}, FaultEvery: 3})
			c, _ := p.client(gp.Config{Heartbeat: 100 * time.Millisecond})
			ctx, end := context.WithCancel(t.Context())
			defer end()
			err := c.Run(ctx, javamethods.MonitorCommand{Target: target(t, "*", "*"), Cycle: time.Second}, func(javamethods.Reply) {
				if tt.counted != nil && tt.counted(c.Stats()) > 2 {
					end()
				}
			})
			switch {
			case tt.counted != nil:
				require.ErrorIs(t, err, context.Canceled)
			case tt.is != nil:
				require.ErrorIs(t, err, tt.is)
			}
			require.ErrorContains(t, err, tt.text)
		})
	}
}
