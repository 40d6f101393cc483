// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// selection is the slow and obvious rule of Keep. It decides over the calls of a stream without Keep, which runs beside
// the one with it.
type selection struct {
	keep    *Keep
	all     *rig
	seen    int
	waiting map[uint64]*piece
	// slow are traces that stay slow. forgotten are traces whose ID alone decided.
	slow, forgotten map[uint64]bool
	// heard is the time of the last event, and heardAt the monotonic time of the first step after which it was the last, or of the
	// last step after which an event waited.
	heard   int64
	heardAt time.Duration
	// failed and named are traces with dropped or left-out calls since their last decision to which these criteria apply.
	failed, named map[uint64]bool
	// callers are the calls with callees. ended are the calls of each lane so far.
	callers map[uint64]bool
	ended   map[uint64][]uint64
	// kept are the calls of each trace, with their criterion.
	kept     map[uint64][]string
	counters KeepCounters
}

// piece has the calls of a trace since its last decision.
type piece struct {
	calls []finished
	// first is the place of the first call among all calls of the stream.
	first int
	since time.Duration
}

// step accepts the new calls of the stream, and decides the traces that have ended.
func (x *selection) step() {
	for ; x.seen < len(x.all.spans); x.seen++ {
		f := x.all.spans[x.seen]
		x.seeCallers(&f)
		if x.forgets(f.Trace) {
			x.counters.Calls[CriterionNone]++
			continue
		}
		p := x.waiting[f.Trace]
		if p == nil {
			p = &piece{first: x.seen, since: x.all.now}
			x.waiting[f.Trace] = p
		}
		p.calls = append(p.calls, f)
	}
	if s := x.all.stream; s.order.window.count > 0 || s.stacks.clock.now != x.heard {
		x.heard, x.heardAt = s.stacks.clock.now, x.all.now
	}
	grows := map[uint64]bool{}
	for _, t := range x.all.stream.stacks.traces.all {
		if t.references > 0 {
			grows[t.root] = true
		}
	}
	for root := range x.waiting {
		if !grows[root] {
			x.decide(root)
		}
	}
}

// forgets reports whether no call can keep the trace, and its ID does not.
func (x *selection) forgets(root uint64) bool {
	k := x.keep
	if k.SlowerThan > 0 || k.Errors || k.Function != nil || testRandom(root) >= k.Threshold {
		return false
	}
	if !x.forgotten[root] {
		x.forgotten[root] = true
		x.counters.Traces[CriterionNone]++
	}
	return true
}

// oldest is the trace whose first call waits longest.
func (x *selection) oldest() (root uint64, ok bool) {
	if len(x.waiting) == 0 {
		return 0, false
	}
	return slices.MinFunc(slices.Collect(maps.Keys(x.waiting)), func(a, b uint64) int {
		return cmp.Compare(x.waiting[a].first, x.waiting[b].first)
	}), true
}

func (x *selection) decideOldest() bool {
	root, ok := x.oldest()
	if ok {
		x.counters.Early[EarlyByBound][x.decide(root)]++
	}
	return ok
}

func (x *selection) decideOverdue() {
	for root, ok := x.oldest(); ok && x.keep.DecideAfter > 0 && x.all.now-x.waiting[root].since >= x.keep.DecideAfter; root, ok = x.oldest() {
		x.counters.Early[EarlyByTime][x.decide(root)]++
	}
}

func (x *selection) decide(root uint64) Criterion {
	calls := x.waiting[root].calls
	delete(x.waiting, root)
	by := x.criterion(root, calls)
	x.counters.Traces[by]++
	x.counters.Calls[by] += uint64(len(calls))
	if by == CriterionNone {
		return by
	}
	folded := x.fold(calls)
	x.counters.RepeatedCalls += uint64(len(calls) - len(folded))
	for _, f := range folded {
		x.kept[root] = append(x.kept[root], fmt.Sprint(f, " kept: ", by))
	}
	return by
}

// likeCalls is what repeated calls have in common.
type likeCalls struct {
	parent   uint64
	function callevent.Function
	lane     string
	line     uint32
}

// fold folds the repeated calls of a piece.
func (x *selection) fold(calls []finished) (folded []finished) {
	latest := map[uint64][]likeCalls{}
	groups := map[likeCalls]int{}
	for _, f := range calls {
		took := f.End - f.Start
		if !x.canFold(&f) {
			folded = append(folded, f)
			continue
		}
		key := likeCalls{f.Parent, f.Function, f.LaneName, f.Line}
		remembered := latest[f.Parent]
		if i := slices.Index(remembered, key); i >= 0 {
			of := &folded[groups[key]]
			if of.Repeated.Calls == 0 {
				first := of.End - of.Start
				of.Repeated = Repeated{1, first, first, first}
			}
			of.Repeated = Repeated{
				of.Repeated.Calls + 1, min(of.Repeated.Least, took), max(of.Repeated.Greatest, took), of.Repeated.Total + took,
			}
			of.End = f.End
			of.LeftOut.Calls += f.LeftOut.Calls
			of.LeftOut.Errors += f.LeftOut.Errors
			of.LeftOut.Time += f.LeftOut.Time
			remembered = slices.Delete(remembered, i, i+1)
		} else {
			folded = append(folded, f)
			groups[key] = len(folded) - 1
		}
		remembered = append(remembered, key)
		latest[f.Parent] = remembered[max(0, len(remembered)-maxGroups):]
	}
	return folded
}

// canFold reports whether a call can be one of repeated calls.
func (x *selection) canFold(f *finished) bool {
	return f.End-f.Start < x.keep.FoldShorterThan && f.Parent != NoParent && f.Truncated == 0 && !f.Unwound &&
		len(f.Throws) == 0 && f.DroppedThrows == 0 && len(f.Attributes) == 0 && !x.callers[f.Sequence]
}

// seeCallers notes the calls that have callees. A call in the same lane that entered later and ended earlier is one.
func (x *selection) seeCallers(f *finished) {
	ended := x.ended[f.Lane]
	if len(ended) > 0 && slices.Max(ended) > f.Sequence {
		x.callers[f.Sequence] = true
	}
	x.ended[f.Lane] = append(ended, f.Sequence)
}

// drop notes the criteria that apply to a call that is dropped because its end was not seen.
func (x *selection) drop(f *finished) {
	took := f.End - f.Start
	if x.keep.SlowerThan > 0 && (f.Parent == NoParent || f.Link != LinkNone) && took >= x.keep.SlowerThan {
		x.slow[f.Trace] = true
	}
	if f.LeftOut.Errors > 0 {
		x.failed[f.Trace] = true
	}
}

// end notes whether the function of a call that ends keeps its trace, also if the call is dropped or left out. In the same way it
// notes errors.
func (x *selection) end(f *finished) {
	if f.Unwound {
		x.failed[f.Trace] = true
	}
	if x.keep.Function != nil {
		if least, wanted := x.keep.Function(f.Function.Qualified); wanted && f.End-f.Start >= least {
			x.named[f.Trace] = true
		}
	}
}

func (x *selection) criterion(root uint64, calls []finished) Criterion {
	k := x.keep
	longest, wanted := x.open(root)
	failed, named := x.failed[root], x.named[root] || wanted
	delete(x.failed, root)
	delete(x.named, root)
	for _, f := range calls {
		if f.Parent == NoParent || f.Link != LinkNone {
			longest = max(longest, f.End-f.Start)
		}
		failed = failed || f.Unwound || f.LeftOut.Errors > 0
	}
	if k.SlowerThan > 0 && longest >= k.SlowerThan {
		x.slow[root] = true
	}
	switch {
	case x.slow[root]:
		return CriterionSlow
	case k.Errors && failed:
		return CriterionError
	case named:
		return CriterionFunction
	case testRandom(root) >= k.Threshold:
		return CriterionRatio
	}
	return CriterionNone
}

// open is the time so far of the longest open call of a trace. It also reports whether an open call keeps the trace by its function.
func (x *selection) open(root uint64) (longest int64, wanted bool) {
	s := &x.all.stream.stacks
	for _, l := range s.lanes {
		for _, f := range l.frames {
			if trace := l.traceOf(&f); trace == noTrace || s.traces.all[trace].root != root {
				continue
			}
			soFar := x.heard - f.start + int64(x.all.now-x.heardAt)
			longest = max(longest, soFar)
			if x.keep.Function != nil {
				least, is := x.keep.Function(s.names.functions[f.function].name.Qualified)
				wanted = wanted || is && soFar >= least
			}
		}
	}
	return longest, wanted
}

// keep are the criteria of a plan.
func (p plan) keep() *Keep {
	r := p.dice(40)
	k := &Keep{
		SlowerThan:  []int64{0, 4_000_000, 30_000_000, 100_000_000}[r.IntN(4)],
		Errors:      r.IntN(2) == 0,
		Threshold:   []uint64{NoThreshold, NoThreshold, 0, 1 << 55, 7 << 53}[r.IntN(5)],
		DecideAfter: time.Duration(r.IntN(3)) * 20 * time.Second,
		// Most calls last some steps of the clock.
		FoldShorterThan: []int64{0, 1_000_001, 30_000_001, testJump * 100}[p.dice(43).IntN(4)],
	}
	if r.IntN(2) == 0 {
		least := []int64{0, 2_000_000, 30_000_000}[r.IntN(3)]
		k.Function = func(qualified string) (int64, bool) { return least, strings.HasSuffix(qualified, ".c") }
	}
	return k
}

// playSelecting delivers the world to a stream with Keep, to one without, and to the rule. It returns the first difference;
// empty: none.
func (w *world) playSelecting() string {
	r := w.plan.dice(41)
	switch r.IntN(3) {
	case 0:
		w.reuseLanes(r)
	case 1:
		w.settings.MaxLanes = 1 + r.IntN(4)
	}
	if w.settings.DropTruncated {
		// A dropped call does not count in its trace, and keeps no short caller. Without these settings it has the same trace
		// and the same left-out callees in a stream that does not drop it.
		w.settings.MinDuration, w.settings.MaxSpansPerTrace = 0, 0
	}
	keep := w.plan.keep()
	if (keep.Function != nil || keep.Errors) && w.settings.MinDuration+int64(w.settings.MaxDepth) > 0 {
		// A left-out call does not count in its trace, and begins none. Without these settings it has the same trace in a
		// stream that does not leave it out.
		w.settings.MaxSpansPerTrace, w.settings.TraceRoot = 0, nil
	}
	settings, whole := w.settings, w.settings
	settings.Keep, whole.DropTruncated = keep, false
	dropping := newRig(&whole, w.resolution)
	every := whole
	every.MinDuration, every.MaxDepth = 0, 0
	leaving := newRig(&every, w.resolution)
	all, selecting := newRig(&w.settings, w.resolution), newRig(&settings, w.resolution)
	rule := &selection{keep: settings.Keep, all: all, waiting: map[uint64]*piece{}, slow: map[uint64]bool{}, forgotten: map[uint64]bool{},
		failed: map[uint64]bool{}, named: map[uint64]bool{},
		callers: map[uint64]bool{}, ended: map[uint64][]uint64{}, kept: map[uint64][]string{}}
	seen, ended := 0, 0
	both := func(do func(*rig)) {
		do(all)
		do(selecting)
		do(dropping)
		do(leaving)
		for ; ended < len(leaving.spans); ended++ {
			rule.end(&leaving.spans[ended])
		}
		for ; seen < len(dropping.spans); seen++ {
			if f := &dropping.spans[seen]; f.Truncated != 0 && w.settings.DropTruncated {
				rule.drop(f)
			}
		}
		rule.step()
	}
	kept, shown := map[uint64][]string{}, 0
	fault := func() string {
		all.fault = cmp.Or(all.fault, selecting.fault)
		if all.fault != "" {
			return all.fault
		}
		for ; shown < len(selecting.spans); shown++ {
			f := selecting.spans[shown]
			kept[f.Trace] = append(kept[f.Trace], fmt.Sprint(f, " kept: ", f.Kept))
		}
		if !maps.EqualFunc(rule.kept, kept, slices.Equal[[]string]) {
			return "kept calls (- expected, + got):\n" + difference(tracesText(rule.kept), tracesText(kept))
		}
		counters := all.counters
		counters.Keep = rule.counters
		if d := difference(countersText(counters), countersText(selecting.counters)); d != "" {
			return "counters (- expected, + got):\n" + d
		}
		return ""
	}
	for _, d := range w.deliveries {
		both(func(r *rig) { r.take(d) })
		if r.IntN(4) == 0 {
			step := time.Duration(r.IntN(3)) * 15 * time.Second
			both(func(r *rig) { r.now += step; r.expire() })
			rule.decideOverdue()
		}
		if r.IntN(6) == 0 {
			if did := selecting.stream.DecideOldest(&selecting.out); did != rule.decideOldest() {
				return fmt.Sprintf("decided the oldest trace: %t", did)
			}
			selecting.collect()
		}
		if r.IntN(20) == 0 {
			both(func(r *rig) { r.giveUpOldest() })
		}
		if r.IntN(8) == 0 {
			both(func(r *rig) { r.stream.Spare() })
		}
		if r.IntN(40) == 0 {
			both(func(r *rig) { r.stream.Forget(&r.out); r.collect() })
		}
		if fault := fault(); fault != "" {
			return fault
		}
	}
	both(func(r *rig) { r.end(callevent.CauseShutdown) })
	if fault := fault(); fault != "" {
		return fault
	}
	if len(rule.waiting) > 0 || settings.Keep.bytes.Load() != 0 {
		return fmt.Sprintf("%d traces wait after the end, in %d bytes", len(rule.waiting), settings.Keep.bytes.Load())
	}
	return ""
}

// reuseLanes lets some renames announce another thread.
func (w *world) reuseLanes(r *rand.Rand) {
	at := map[uint32]uint64{}
	for i := range w.renames {
		if r.IntN(3) == 0 {
			at[w.renames[i].Rank] = w.events[r.IntN(len(w.events))].sequence
		}
	}
	for i := range w.deliveries {
		renames := slices.Clone(w.deliveries[i].renames)
		for j := range renames {
			if after, reused := at[renames[j].Rank]; reused {
				renames[j].Reused, renames[j].After, renames[j].First = true, after, false
			}
		}
		w.deliveries[i].renames = renames
	}
}

// tracesText has the calls of each trace, in their order.
func tracesText(traces map[uint64][]string) string {
	var b strings.Builder
	for _, root := range slices.Sorted(maps.Keys(traces)) {
		for i, call := range traces[root] {
			fmt.Fprintf(&b, "trace %d, call %d: %s\n", root, i, call)
		}
	}
	return b.String()
}

// The kept calls of any events, in any delivery, are those of the processor, and the rule over the calls of a trace
// decides whether they are kept.
func TestKeptTracesAreThoseOfTheRuleWithAllTheirCalls(t *testing.T) {
	forPlans(t, 1000, allFeatures, func(p plan) string { return generate(p).playSelecting() })
}

// Short calls in loops of many kinds are folded as the rule folds them.
func TestRepeatedCallsAreThoseOfTheRule(t *testing.T) {
	const features = withExceptions | withAnomalies | withAttributes | withBreaks | withLateBarriers | withLoss | withTraces | withLess | withEnd | withRenames
	forPlans(t, 300, features, func(p plan) string {
		p.events *= 5
		p.with |= withRepeats
		return generate(p).playSelecting()
	})
}

// Two collectors that receive the same calls in another order, and decide at other times, keep the same traces by ratio.
func TestTwoCollectorsKeepTheSameTracesByRatio(t *testing.T) {
	complete := allFeatures &^ (withLoss | withExpiry | withSmallWindow | withGiveUpOldest | withLateBarriers | withRenames)
	forPlans(t, 300, complete, func(p plan) string {
		w := generate(p)
		if w.breaksBeyondEnd() {
			return ""
		}
		collect := func(keep *Keep, decide *rand.Rand) string {
			settings := w.settings
			settings.Keep = keep
			r := newRig(&settings, w.resolution)
			for _, d := range w.deliveries {
				r.take(d)
				for decide != nil && decide.IntN(2) == 0 && r.stream.DecideOldest(&r.out) {
					r.collect()
				}
			}
			r.end(callevent.CauseShutdown)
			if r.fault != "" {
				return r.fault
			}
			return lines(slices.DeleteFunc(r.spans, func(f finished) bool { return testRandom(f.Trace) < 1<<55 }))
		}
		want := collect(nil, nil)
		r := p.dice(42)
		for range 2 {
			if d := difference(want, collect(&Keep{Threshold: 1 << 55}, r)); d != "" {
				return "spans (- expected, + got):\n" + d
			}
			r.Shuffle(len(w.deliveries), func(i, j int) { w.deliveries[i], w.deliveries[j] = w.deliveries[j], w.deliveries[i] })
		}
		return ""
	})
}
