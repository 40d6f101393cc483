// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/callevent"
)

// play delivers the world to a stream and to the model, and says how they
// differ; empty: not at all.
func (w *world) play() string {
	r, m := newRig(&w.settings, w.resolution), newModel(&w.settings)
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

// compare says what is wrong with the stream so far, and how it and its output
// differ from the model's.
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

// check holds what came out against the invariants.
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

// forPlans tries plans with fixed seeds and a few that nobody has tried before.
func forPlans(t *testing.T, fixed int, with features, fails func(plan) string) {
	t.Helper()
	fresh := fixed / 10
	for i := range fixed + fresh {
		p := plan{seed: uint64(i), with: with}
		if i >= fixed {
			p.seed = rand.Uint64()
		}
		r := p.dice(0)
		p.events = 1 + r.IntN(120)
		// Not always everything at once.
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

// Whatever happens and however it is delivered, the spans and the counters are
// those that the rules say.
func TestEverythingIsAsTheRulesSay(t *testing.T) {
	forPlans(t, 3000, allFeatures, func(p plan) string { return generate(p).play() })
}
