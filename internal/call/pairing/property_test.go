// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// play delivers the world to a stream and to the model. It returns their first difference; empty: none.
func (w *world) play() string {
	r, m := newRig(&w.settings, w.resolution), newModel(&w.settings, w.resolution)
	schedule := w.plan.dice(12)
	for _, d := range w.deliveries {
		r.take(d)
		m.take(d, r.now)
		if w.plan.has(withExpiry) && schedule.IntN(4) == 0 {
			r.now += time.Duration(schedule.IntN(3)) * 25 * time.Second
			r.expire()
			m.expire(r.now)
		}
		if w.plan.has(withGiveUpOldest) && schedule.IntN(6) == 0 {
			r.giveUpOldest()
			m.giveUpOldest()
		}
		if fault := r.compare(m); fault != "" {
			return fault
		}
	}
	if schedule.IntN(2) == 0 {
		r.now += 2 * testWait
		r.expire()
		m.expire(r.now)
	}
	r.end(callevent.CauseShutdown)
	m.end(callevent.CauseShutdown)
	if fault := r.compare(m); fault != "" {
		return fault
	}
	return w.check(r, m)
}

// compare returns the first fault of the stream, or its difference from the model; empty: none.
func (r *rig) compare(m *model) string {
	if r.fault != "" {
		return r.fault
	}
	want := lines(m.spans())
	if r.stream.Waiting() != len(m.waiting) {
		r.blame("%d events wait, expected %d", r.stream.Waiting(), len(m.waiting))
	}
	if d := difference(want, lines(r.spans)); d != "" {
		r.blame("spans (- expected, + got):\n%s", d)
	}
	if d := difference(countersText(m.counters), countersText(r.counters)); d != "" {
		r.blame("counters (- expected, + got):\n%s", d)
	}
	return r.fault
}

// check compares the spans and the counters with the invariants.
func (w *world) check(r *rig, m *model) string {
	if wrong := wrongSpans(&w.settings, r.spans, r.counters.Breaks[callevent.CauseClock] > 0); wrong != "" {
		return wrong
	}
	if wrong := wrongCounters(r.counters, r.spans, m.paired, uint64(len(m.all))); wrong != "" {
		return wrong
	}
	if n := r.stream.OpenFrames(); n != 0 {
		return "frames are open after the end"
	}
	return ""
}

// shrink finds a smaller plan that still fails.
func shrink(p plan, fails func(plan) string) (plan, string) {
	fault := fails(p)
	for smaller := true; smaller; {
		smaller = false
		var tries []plan
		for _, events := range []int{p.events / 2, p.events * 3 / 4, p.events - 1} {
			if events > 0 && events < p.events {
				tries = append(tries, plan{p.seed, events, p.with})
			}
		}
		for f := features(1); f < allFeatures; f <<= 1 {
			if p.has(f) {
				tries = append(tries, plan{p.seed, p.events, p.with &^ f})
			}
		}
		for _, try := range tries {
			if f := fails(try); f != "" {
				p, fault, smaller = try, f, true
				break
			}
		}
	}
	return p, fault
}

var morePlans = flag.Int("plans", 0, "generated plans with random seeds that each property is tried with, beside the fixed ones")

// forPlans tries plans with fixed seeds, and others with -plans. Without it each run has the same result.
func forPlans(t *testing.T, fixed int, with features, fails func(plan) string) {
	t.Helper()
	for i := range fixed + *morePlans {
		p := plan{seed: uint64(i), with: with}
		if i >= fixed {
			p.seed = rand.Uint64()
		}
		r := p.dice(0)
		p.events = 1 + r.IntN(120)
		// Not all features together each time.
		if r.IntN(3) > 0 {
			p.with &= features(r.Uint32())
		}
		if fails(p) == "" {
			continue
		}
		smallest, fault := shrink(p, fails)
		t.Fatalf("%s, shrunk to %s:\n%s", p, smallest, fault)
	}
}

// The spans and the counters of any events, in any delivery, are those of the rules.
func TestAllSpansAndCountersFollowTheRules(t *testing.T) {
	forPlans(t, 3000, allFeatures, func(p plan) string { return generate(p).play() })
}

// While no number is given up, the order of batches does not matter. The result follows from all events in the order
// of their numbers, with all barriers and renames known before.
func TestTheOrderOfBatchesDoesNotMatter(t *testing.T) {
	complete := allFeatures &^ (withLoss | withExpiry | withSmallWindow | withGiveUpOldest | withLateBarriers)
	forPlans(t, 600, complete, func(p plan) string {
		if p.has(withRenames) {
			// A late rename finds open frames by their start. That is not the time of the entry if the clock went
			// back, or stood longer than its resolution.
			p.with &^= withClockJumps
			p.seed += 2 - p.seed%3
		}
		w := generate(p)
		if w.breaksBeyondEnd() {
			return ""
		}
		m := newModel(&w.settings, w.resolution)
		m.take(delivery{events: w.received(), barriers: w.barriers, renames: w.renames}, 0)
		m.expire(2 * testWait)
		m.end(callevent.CauseShutdown)
		want := lines(m.spans())
		r := p.dice(21)
		for range 5 {
			rig := newRig(&w.settings, w.resolution)
			for _, d := range w.deliveries {
				rig.take(d)
			}
			rig.now = 2 * testWait
			rig.expire()
			rig.end(callevent.CauseShutdown)
			if rig.fault != "" {
				return rig.fault
			}
			if d := difference(want, lines(rig.spans)); d != "" {
				return "spans (- expected, + got):\n" + d
			}
			// Some of the breaks at one place may arrive after the end.
			sameBreaks := p.has(withEnd) || rig.counters.Breaks == m.counters.Breaks
			if !sameBreaks || rig.counters.Truncated != m.counters.Truncated || rig.counters.Orphans != m.counters.Orphans {
				return "counters:\n" + difference(countersText(m.counters), countersText(rig.counters))
			}
			r.Shuffle(len(w.deliveries), func(i, j int) { w.deliveries[i], w.deliveries[j] = w.deliveries[j], w.deliveries[i] })
		}
		return ""
	})
}

// breaksBeyondEnd: no tracer reports a break after the end.
func (w *world) breaksBeyondEnd() bool {
	end := uint64(never)
	for _, b := range w.barriers {
		if b.Kind == callevent.BarrierEnd {
			end = min(end, b.From)
		}
	}
	return slices.ContainsFunc(w.barriers, func(b callevent.Barrier) bool { return b.To > end })
}

// received are the events of all batches, in order.
func (w *world) received() (events []happened) {
	for _, d := range w.deliveries {
		events = append(events, d.events...)
	}
	slices.SortStableFunc(events, func(a, b happened) int { return cmp.Compare(a.sequence, b.sequence) })
	return slices.CompactFunc(events, func(a, b happened) bool { return a.sequence == b.sequence })
}
