// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// withProcessMemory gives the process so much memory for all runs.
func withProcessMemory(process *budget.Budget) option {
	return func(b *bed, _ *Config) { b.Host = budgettest.Host(componenttest.NewNopHost(), process) }
}

// someNames are map messages of n methods from an ID on, with 1000 bytes each.
func someNames(first, n int) []byte {
	var b []byte
	for id := range n {
		name := fmt.Sprintf("demo/Shop.m%d%s;1;()V", first+id, strings.Repeat("x", 1000))
		b = bytefrog.MapMethod{Method: uint32(first + id), Signature: name}.AppendTo(b)
	}
	return b
}

// points are those of a counter of the receiver's own, by its attribute.
func (b *bed) points(name string) map[string]int64 {
	b.T.Helper()
	return telemetrytest.Points(b.T, b.Telemetry, "otelcol_"+name)
}

func TestTheLargestRunEndsAtTheMemoryBoundAndAnHonestOneContinues(t *testing.T) {
	process := budget.New(8 << 20)
	b := newBed(t, quickly, withDataConnections(1), withProcessMemory(process))
	honest, hostile := connect(b, 1), connect(b, 1)
	mine, theirs := honest.join(), hostile.join()
	mine.write(append(namesOne(), calls(0, 10)...))
	run := b.receiver.env.registry.lookup(2)
	for first := 0; ; first += 100 {
		if _, err := theirs.conn.Write(someNames(first, 100)); err != nil {
			break
		}
		if run.State().Leaving {
			break
		}
	}
	assert.Contains(t, hostile.control.expectError(), "limit_mib of memory_budget is reached")
	b.awaitRuns(1)
	mine.write(calls(20, 10))
	honest.finish()
	b.awaitRuns(0)
	for _, s := range b.streams() {
		if len(s.events) > 0 {
			assert.Len(t, s.events, 40, "of the honest one")
			assert.Equal(t, callevent.End(40, callevent.CauseEnded), s.end(t))
			continue
		}
		assert.Equal(t, callevent.End(0, callevent.CauseLimit), s.end(t))
	}
	assert.Equal(t, int64(1), b.points("receiver_bytefrog_runs_shed")["{reason=memory_budget}"], "%v", b.points("receiver_bytefrog_runs_shed"))
	assert.Len(t, b.Log.FilterMessageSnippet("The run ends: limit_mib of memory_budget is reached").All(), 1)
	hostile.expectToLinger(b, 2)
	assert.Less(t, process.Used(), int64(2<<20))
}

func TestAFullRunFreesItsMemoryWhileThePipelineRefuses(t *testing.T) {
	process := budget.New(1 << 30)
	b := newBed(t, quickly, quickRetries, withDataConnections(2), withProcessMemory(process), func(_ *bed, c *Config) {
		c.ShutdownTimeout, c.NameWait, c.MissedHeartbeats = receivertestbed.Patience/2, receiverkit.MaxBatchNameWait, 1000
		c.Limits.MaxRunMemory = 8 << 20
		c.EndTimeout = never
	})
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	run := b.receiver.env.registry.lookup(1)
	p.write(append(namesOne(), calls(0, 10)...))
	other.write(someNames(100, 1000))
	// They wait for the name of method 7.
	var waiting []byte
	for sequence := range uint32(5000) {
		waiting = append(waiting, enter(20+sequence, 7, 1, 0)...)
	}
	other.write(waiting)
	b.Await("a batch to be refused", func() bool { return run.State().Waiting > 0 })
	b.awaitReceived(5020)
	require.Greater(t, run.Memory().Held(), int64(2<<20))
	// The last names are too many.
	_, _ = other.conn.Write(someNames(2000, 4000))
	assert.Contains(t, a.control.expectError(), "limits.max_run_memory is reached (8388608)")
	b.Await("memory to be free", func() bool { return run.Memory().Held() < 100<<10 })
	b.Await("the drops", func() bool { return b.Counter("events_dropped") == 5020 })
	assert.Equal(t, map[string]int64{"{reason=max_run_memory}": 5020}, b.points("receiver_bytefrog_events_dropped"))
	assert.Len(t, b.receiver.env.registry.list(), 1, "its end is still tried")
	b.Traces.RefuseWith(nil)
	b.awaitRuns(0)
	s := b.only()
	assert.Equal(t, callevent.End(5020, callevent.CauseLimit), s.end(t))
	assert.Equal(t, []callevent.Barrier{callevent.Point(5020, callevent.CauseLimit)}, s.breaks())
	assert.Equal(t, map[string]int64{"{reason=max_run_memory}": 1}, b.points("receiver_bytefrog_runs_shed"))
	a.expectToLinger(b, 3)
}

func TestTheEndOfARunHasATimeLimit(t *testing.T) {
	for name, c := range map[string]struct {
		change  option
		end     func(*agent, *bed)
		dropped map[string]int64
		// late is how many batches were dropped because the time was over.
		late int64
	}{
		"that has ended by itself": {
			change:  func(_ *bed, c *Config) { c.EndTimeout = 50 * time.Millisecond },
			end:     func(a *agent, _ *bed) { a.finish() },
			dropped: map[string]int64{"{reason=end_timeout}": 20}, late: 2,
		},
		"that holds too much": {
			change: func(_ *bed, c *Config) { c.EndTimeout, c.ShutdownTimeout = never, 50*time.Millisecond },
			end: func(_ *agent, b *bed) {
				b.receiver.env.registry.lookup(1).Memory().Fill(&budget.Error{Setting: budget.Setting, Group: "bytefrog"})
			},
			dropped: map[string]int64{"{reason=memory_budget}": 20}, late: 1,
		},
		"that had ended before it is found to hold too much": {
			change: func(_ *bed, c *Config) { c.EndTimeout, c.ShutdownTimeout = never, 50*time.Millisecond },
			end: func(a *agent, b *bed) {
				run := b.receiver.env.registry.lookup(1)
				a.finish()
				b.Await("the end", func() bool { return run.State().Leaving })
				run.Memory().Fill(&budget.Error{Setting: budget.Setting, Group: "bytefrog"})
			},
			dropped: map[string]int64{"{reason=memory_budget}": 20}, late: 1,
		},
	} {
		for policy, overload := range map[string]OverloadPolicy{"block": OverloadBlock, "suspend": OverloadSuspend} {
			t.Run("of a run "+name+", with the policy "+policy, func(t *testing.T) {
				b := newBed(t, quickly, quickRetries, withDataConnections(1), c.change, func(_ *bed, c *Config) { c.OnOverload = overload })
				b.Traces.RefuseWith(receivertestbed.ErrRefused)
				a := connect(b, 1)
				a.join().write(append(namesOne(), calls(0, 10)...))
				b.Await("refusals", func() bool { return b.Traces.Calls().Returned > 2 })
				c.end(a, b)
				b.awaitRuns(0)
				assert.Equal(t, c.dropped, b.points("receiver_bytefrog_events_dropped"))
				assert.Equal(t, c.late, b.points("receiver_bytefrog_batches_dropped")["{reason=end_timeout}"], "the end is one of them")
			})
		}
	}
}

func TestAShutdownEndsInTimeWhileManyRunsEndAndThePipelineHangs(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) {
		c.ShutdownTimeout = 100 * time.Millisecond
		c.EndTimeout = never
	})
	b.Traces.Hang(false)
	for range 50 {
		a := connect(b, 1)
		a.join().write(append(namesOne(), calls(0, 10)...))
	}
	b.Await("hand-overs", func() bool { return b.Traces.Calls().Begun >= 50 })
	for _, run := range b.receiver.env.registry.list() {
		run.Memory().Fill(&budget.Error{Setting: budget.Setting, Group: "bytefrog"})
	}
	b.Await("names to be dropped though the pipeline does not return", func() bool {
		for _, run := range b.receiver.env.registry.list() {
			if run.Memory().Bounded() > 0 {
				return false
			}
		}
		return true
	})
	require.NoError(t, b.Component().Shutdown(context.Background()))
	assert.EqualValues(t, 50, b.Counter("runs_shed"))
	assert.EqualValues(t, 50*20, b.Counter("events_dropped"))
}

func TestMemoryOfRunsAndConnectionsIsReturned(t *testing.T) {
	process := budget.New(1 << 30)
	b := newBed(t, quickly, withDataConnections(2), withProcessMemory(process))
	silent := dial(t, b.address())
	b.Await("a connection that says nothing", func() bool { return process.Used() > 0 })
	agents := []*agent{connect(b, 1), connect(b, 2)}
	for _, a := range agents {
		for range 2 {
			a.join().write(append(append(namesOne(), someNames(100, 500)...), calls(0, 100)...))
		}
	}
	b.Await("names", func() bool { return process.Used() > 2<<20 })
	// Four data connections have buffers.
	assert.Greater(t, process.Usages()[0].Bytes, int64(4*64<<10))
	for _, a := range agents {
		a.finish()
	}
	b.awaitRuns(0)
	silent.close()
	b.Await("all connections to end", func() bool { return b.receiver.env.connections.now() == 0 })
	b.Shutdown()
	assert.Zero(t, process.Used())
}
