// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// Each cut of a collector loses the data on its way. The trace continues as a new run that begins with a break.
func TestAfterACutTheTraceContinuesAsANewRunWithABreak(t *testing.T) {
	cuts := 5
	if testing.Short() {
		cuts = 1
	}
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address})
	p := &counting{slow: true}
	a, results := b.start(t.Context(), p)
	filled := func(runs int) func() bool {
		return func() bool {
			seen := c.seen()
			for _, events := range seen {
				if events < 1000 {
					return false
				}
			}
			return len(seen) == runs
		}
	}
	for i := range cuts {
		b.await("events in another run", filled(i+1))
		b.network.cut()
	}
	b.await("events in the last run", filled(cuts+1))
	a.Stop()
	result := ended(t, results)
	require.Equal(t, "the program was ended early by its user", result.Reason)
	b.await("the session's end", func() bool { return b.guard.State().Agents == 0 })
	c.stop()
	runs := c.runs()
	bases := p.checkRuns(t, runs)
	assert.Len(t, bases, cuts+1)
	assert.Len(t, p.breaks, cuts+int(b.guard.counts.Stalls.Load()))
	broken := 0
	for _, r := range runs {
		if r.breaks[callevent.Point(0, callevent.CauseSuspended)] {
			broken++
		}
	}
	assert.Equal(t, cuts, broken, "runs that begin with a break")
	assert.EqualValues(t, cuts, b.guard.counts.Losses.Load())
	assert.EqualValues(t, cuts+1, b.guard.counts.Runs.Load())
}

// A collector that shuts down in order has all sent data, and the trace continues at the next one.
func TestACollectorThatIsRestartedLosesNothing(t *testing.T) {
	address := testkit.Address(t)
	first := newCollector(t, address)
	b := newBed(t, []string{address})
	p := &counting{slow: true}
	a, results := b.start(t.Context(), p)
	b.await("events", func() bool { return first.number() > 1000 })
	first.stop()
	second := newCollector(t, address, func(c *bytefrogreceiver.Config) { c.Agent.DataConnections = 3 })
	b.await("more events", func() bool { return second.number() > 1000 })
	a.Stop()
	result := ended(t, results)
	require.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	second.awaitEnds(1)
	second.stop()
	require.Equal(t, []uint64{0}, p.checkRuns(t, first.runs()))
	require.Len(t, p.breaks, 1)
	assert.Equal(t, int(p.breaks[0]), first.number(), "all before the break")
	require.Equal(t, []uint64{uint64(p.breaks[0])}, p.checkRuns(t, second.runs()))
	assert.Equal(t, int(p.next-p.breaks[0]), second.number(), "all after the break")
}

func TestTheProgramRunsOnWhenTheGuardEnds(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(b *bed, c *collector){
		"while all is well":           func(*bed, *collector) {},
		"while there is no collector": func(b *bed, c *collector) { c.stop() },
		"while the collector is stuck": func(b *bed, _ *collector) {
			b.network.stick(true)
			b.await("a stall", func() bool { return b.guard.State().Stalled == 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCollector(t, testkit.Address(t))
			b := newBed(t, []string{c.address}, narrow)
			_, results := b.start(t.Context(), &counting{slow: true})
			b.await("events", func() bool { return c.number() > 1000 })
			before(b, c)
			done := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { done <- b.guard.Shutdown(ctx) }()
			result := ended(t, results)
			assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
			b.network.stick(false)
			require.NoError(t, <-done)
		})
	}
}

func TestClassReportsWithoutACollectorAreCounted(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.answer = patience })
	a := b.byHand(t)
	a.data()
	report := func(class string) {
		a.say(bytefrog.ClassReport{Result: bytefrog.TypeClassTransformed, Class: class})
	}
	report("demo/Told")
	b.await("the class report", func() bool { return strings.Contains(strings.Join(c.delivered().logs, " "), "demo/Told") })
	b.network.cut()
	require.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
	b.await("the loss", func() bool { return b.guard.State().Connected == 0 })
	report("demo/Dropped")
	report("demo/Dropped2")
	b.await("the dropped class reports", func() bool { return b.guard.counts.ClassReports.Load() == 2 })
}
