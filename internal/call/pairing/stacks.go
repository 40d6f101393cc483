// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"slices"
	"sort"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// stacks pair the ordered events of a stream. They have one stack for each lane, and emit
// each call that ends: rules 2, 3 and 6 to 10.
type stacks struct {
	settings *Settings
	names    *names
	// out receives finished calls during a call of a Stream's method.
	out *Output

	renames renames
	// reuses are the lanes that other threads have got, by ID.
	reuses map[uint64]*reuse
	clock  clock
	traces openTraces
	sums   sums

	lanes []lane
	// laneIDs maps an ID to the index in lanes.
	laneIDs map[uint64]int32
	// breaks is the number of times when all stacks became unknown.
	breaks uint64
	// open is the number of open frames of all lanes, and bytes the memory of the stacks.
	open, bytes int
	// attributes is the memory of attributes of open frames and of waiting events.
	attributes attributeMemory
}

func newStacks(settings *Settings, n *names) stacks {
	return stacks{
		settings: settings, names: n,
		renames: renames{names: n, histories: map[uint64]*history{}}, reuses: map[uint64]*reuse{},
		clock:   clock{now: beforeAll},
		sums:    newSums(settings, n),
		traces:  openTraces{settings: settings, names: n},
		laneIDs: map[uint64]int32{},
	}
}

// pair applies the event to the stack of its lane:
//
//  1. The clock advances to its time. If the time jumps, all stacks end.
//  2. Its name leads to its lane.
//  3. If two threads share the lane, the rules of reuse apply.
//  4. Otherwise its kind opens a frame, closes one, or adds an exception to one.
func (s *stacks) pair(e *event, sequence uint64, attributes []attribute) {
	if e.kind == callevent.KindSkip {
		return
	}
	if !s.clock.tick(e, s.settings.MaxClockJump) {
		s.out.Counters.Breaks[callevent.CauseClock]++
		s.endAll(callevent.CauseClock)
		s.clock.reset(e)
	}
	name := &s.names.laneNames[e.laneName]
	if name.index == noLane {
		s.setLane(name)
	}
	l := &s.lanes[name.index]
	if l.forgotten {
		s.sums.findForgotten(l)
	}
	if l.reuse != nil && s.pairReused(l, e, sequence, attributes) {
		return
	}
	switch e.kind {
	case callevent.KindEnter:
		s.enter(l, e, sequence, attributes)
	case callevent.KindExit:
		s.exit(l, e, attributes)
	case callevent.KindExitTop:
		s.exitTop(l, e, attributes)
	default:
		s.pairRare(l, e, sequence, attributes)
	}
}

// pairRare pairs an event of a rare kind. From eight cases on, the compiler makes a jump table of a
// switch. The CPU mispredicts its jumps: with one switch for all kinds, pairing was 5% slower.
func (s *stacks) pairRare(l *lane, e *event, sequence uint64, attributes []attribute) {
	switch e.kind {
	case callevent.KindEnterFrom:
		s.find(l, e.exception, callevent.CauseLongjmp)
		s.enter(l, e, sequence, attributes)
	case callevent.KindThrow:
		s.throw(l, e, attributes)
	case callevent.KindUnwind:
		s.unwind(l, e, attributes)
	case callevent.KindEnterOutermost:
		s.truncate(l, 0, callevent.CauseMismatch, s.clock.now)
		s.enter(l, e, sequence, attributes)
	case callevent.KindFail:
		s.fail(l, e, attributes)
	}
}

// setLane sets the lane of a name. A new lane may end calls of others, to make room.
func (s *stacks) setLane(n *laneName) {
	index, ok := s.laneIDs[n.id]
	if !ok {
		if len(s.lanes) >= s.settings.MaxLanes {
			s.forgetLanes()
		}
		index = int32(len(s.lanes))
		s.lanes = append(s.lanes, lane{id: n.id, continuation: noTrace, from: noTime})
		s.lanes[index].follow(s.renames.histories[n.id])
		s.lanes[index].reuse = s.reuses[n.id]
		s.laneIDs[n.id] = index
	}
	n.index = index
}

// forgetLanes makes room for another lane. It forgets the lanes without open frames. If
// these are less than half, it forgets all.
func (s *stacks) forgetLanes() {
	kept := s.lanes[:0]
	busy := 0
	for i := range s.lanes {
		if len(s.lanes[i].frames) > 0 {
			busy++
		}
	}
	for i := range s.lanes {
		l := s.lanes[i]
		if busy > len(s.lanes)/2 {
			s.truncate(&l, 0, callevent.CauseLimit, s.clock.now)
		}
		if len(l.frames) > 0 || l.isShared() && busy <= len(s.lanes)/2 {
			kept = append(kept, l)
		} else {
			s.traces.release(l.continuation, s.out)
			s.free(&l)
		}
	}
	clear(s.lanes[len(kept):])
	s.lanes = kept
	clear(s.laneIDs)
	for i := range s.lanes {
		s.laneIDs[s.lanes[i].id] = int32(i)
	}
	for i := range s.names.laneNames {
		s.names.laneNames[i].index = noLane
	}
}

// enter opens a frame: rule 2. Rule 9 gives it a trace.
func (s *stacks) enter(l *lane, e *event, sequence uint64, attributes []attribute) {
	if len(l.frames) >= s.settings.MaxFrames {
		s.truncate(l, 0, callevent.CauseLimit, s.clock.now)
	}
	depth := len(l.frames)
	if depth == cap(l.frames) {
		s.bytes -= l.bytes()
		l.frames = slices.Grow(l.frames, 1)
		s.bytes += l.bytes()
	}
	l.frames = l.frames[:depth+1]
	f := &l.frames[depth]
	// Field by field: a literal would be built elsewhere and copied.
	*f = frame{}
	now := s.clock.now
	f.sequence, f.start, f.inner = sequence, now, now
	f.function, f.name = e.function, l.name
	if e.time < l.from {
		name, known := l.history.nameAt(e.time, s.names)
		if !known {
			name = e.laneName
		}
		f.name = name
	}
	if l.isShared() {
		depth, f.name = 0, s.names.laneName(callevent.Lane{ID: l.id})
	}
	s.traces.choose(l, f, depth, s.out)
	if s.sums.of != nil {
		s.sums.findPath(l, f, depth)
	}
	s.names.functions[e.function].open++
	s.open++
	if l.counts != nil {
		l.counts[e.function]++
	}
	if len(attributes) > 0 {
		s.attach(l, f, attributes)
	}
}

// find makes the nearest frame of the function the top of the stack: rule 3. It truncates
// the frames above it for the cause, and reports false for an orphan.
func (s *stacks) find(l *lane, function uint32, cause callevent.Cause) bool {
	if l.isTop(function) {
		return true
	}
	top := len(l.frames) - 1
	if s.names.functions[function].open > 0 && (l.counts == nil || l.counts[function] > 0) {
		for i := top - 1; i >= 0; i-- {
			if l.frames[i].function == function {
				s.truncate(l, i+1, cause, s.clock.now)
				return true
			}
		}
		l.count()
	}
	return false
}

// orphan counts an event without a frame, and its attributes.
func (s *stacks) orphan(attributes []attribute) {
	s.out.Counters.Orphans++
	s.out.Counters.DroppedAttributes += uint64(len(attributes))
}

// attach adds attributes to the top frame of the lane.
func (s *stacks) attach(l *lane, f *frame, attributes []attribute) {
	if room := maxAttributes - int(f.attributes); len(attributes) > room {
		s.out.Counters.DroppedAttributes += uint64(len(attributes) - room)
		attributes = attributes[:room]
	}
	s.bytes -= l.bytes()
	l.attributes = append(l.attributes, attributes...)
	s.bytes += l.bytes()
	f.attributes += uint8(len(attributes))
	s.attributes.charge(attributes)
}

// throw adds an exception to the frame of the function. The program has left all frames
// above it.
func (s *stacks) throw(l *lane, e *event, attributes []attribute) {
	if !s.find(l, e.function, callevent.CauseMismatch) {
		s.orphan(attributes)
		return
	}
	f := &l.frames[len(l.frames)-1]
	f.inner = s.clock.now
	if len(attributes) > 0 {
		s.attach(l, f, attributes)
	}
	s.attachThrow(l, f, e)
}

func (s *stacks) attachThrow(l *lane, f *frame, e *event) {
	if int(f.throws) >= s.settings.MaxThrows {
		f.droppedThrows++
		f.dropped = e.exception
		s.out.Counters.DroppedThrows++
		return
	}
	f.throws++
	s.bytes -= l.bytes()
	l.throws = append(l.throws, Throw{Time: s.clock.now, Type: s.names.exceptions[e.exception], Line: e.line})
	s.bytes += l.bytes()
}

// exit closes the frame of the function, which returned.
func (s *stacks) exit(l *lane, e *event, attributes []attribute) {
	// The compiler inlines isTop, not find.
	if !l.isTop(e.function) && !s.find(l, e.function, callevent.CauseMismatch) {
		s.orphan(attributes)
		return
	}
	s.close(l, &outcome{end: s.clock.now, line: e.line, attributes: attributes})
}

// exitTop closes the top frame, of any function.
func (s *stacks) exitTop(l *lane, e *event, attributes []attribute) {
	if len(l.frames) == 0 {
		s.orphan(attributes)
		return
	}
	s.close(l, &outcome{end: s.clock.now, line: e.line, attributes: attributes})
}

// unwind closes the frame of the function, which an exception left.
func (s *stacks) unwind(l *lane, e *event, attributes []attribute) {
	if !s.find(l, e.function, callevent.CauseMismatch) {
		s.orphan(attributes)
		return
	}
	f := &l.frames[len(l.frames)-1]
	exception := s.names.exceptions[e.exception]
	// A dropped one was counted.
	thrown := f.droppedThrows > 0 && s.names.exceptions[f.dropped] == exception
	for _, t := range l.throws[len(l.throws)-int(f.throws):] {
		thrown = thrown || t.Type == exception
	}
	if !thrown {
		s.attachThrow(l, f, e)
	}
	s.close(l, &outcome{end: s.clock.now, unwound: true, exception: e.exception, attributes: attributes})
}

// fail closes the frame of the function, which returned an error.
func (s *stacks) fail(l *lane, e *event, attributes []attribute) {
	if !s.find(l, e.function, callevent.CauseMismatch) {
		s.orphan(attributes)
		return
	}
	s.close(l, &outcome{end: s.clock.now, unwound: true, exception: e.exception, line: e.line, attributes: attributes})
}

// pairReused pairs the event of a lane that another thread has got, or will get. It
// reports false if the lane is not shared.
func (s *stacks) pairReused(l *lane, e *event, sequence uint64, attributes []attribute) bool {
	r := l.reuse
	if r.begins(e, sequence) {
		if !r.shared && (len(l.frames) > 0 || l.cut) {
			r.prepare(l.cut, s.breaks)
			for i := range l.frames {
				r.enter(l.frames[i].function)
			}
			s.truncate(l, 0, callevent.CauseThreadReused, s.clock.now)
			r.shared = true
		}
		r.pending = e.time < r.time
	}
	if !r.shared {
		return false
	}
	s.pairShared(l, e, sequence, attributes)
	return true
}

// pairShared pairs an event of a lane that several threads have.
func (s *stacks) pairShared(l *lane, e *event, sequence uint64, attributes []attribute) {
	r := l.reuse
	r.noteBreaks(s.breaks)
	switch e.kind {
	case callevent.KindEnter, callevent.KindEnterFrom, callevent.KindEnterOutermost:
		sure := r.enter(e.function)
		s.enter(l, e, sequence, nil)
		s.out.Counters.DroppedAttributes += uint64(len(attributes))
		if !sure {
			for s.closeShared(l, e.function, &outcome{end: s.clock.now, truncated: callevent.CauseThreadReused}) {
			}
		}
	case callevent.KindExit, callevent.KindUnwind, callevent.KindFail:
		if !r.exit(e.function) {
			s.orphan(attributes)
			return
		}
		o := outcome{end: s.clock.now, line: e.line, attributes: attributes}
		if e.kind != callevent.KindExit {
			o = outcome{end: s.clock.now, unwound: true, exception: e.exception, attributes: attributes}
		}
		if !s.closeShared(l, e.function, &o) {
			s.out.Counters.DroppedAttributes += uint64(len(attributes))
		}
		r.unshareIfIdle()
	default:
		s.orphan(attributes)
	}
}

// closeShared closes the latest call of the function on a shared lane. It reports false if
// there is none.
func (s *stacks) closeShared(l *lane, function uint32, o *outcome) bool {
	if s.names.functions[function].open == 0 {
		return false
	}
	for i := len(l.frames) - 1; i >= 0; i-- {
		if f := &l.frames[i]; f.function == function {
			s.conclude(l, f, nil, &belongings{}, o)
			l.frames = slices.Delete(l.frames, i, i+1)
			s.freeIfEmpty(l)
			return true
		}
	}
	return false
}

// endAll truncates all frames 1 ns after the last event: all numbers before the next one
// are done.
func (s *stacks) endAll(cause callevent.Cause) {
	s.breaks++
	if s.open == 0 {
		return
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		l.cut = l.cut || len(l.frames) > 0
		s.truncate(l, 0, cause, s.clock.now+1)
	}
}

// endBefore truncates the frames that were entered before a break that arrives late, each
// at the last event inside it. Frames that were entered after it stay, without a parent.
func (s *stacks) endBefore(sequence uint64, cause callevent.Cause) {
	s.breaks++
	if s.open == 0 {
		return
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		l.cut = l.cut || len(l.frames) > 0
		old := 0
		for old < len(l.frames) && l.frames[old].sequence < sequence {
			old++
		}
		s.truncateLowest(l, old, cause)
	}
}

// truncate closes the frames from number depth on, top first.
func (s *stacks) truncate(l *lane, depth int, cause callevent.Cause, end int64) {
	s.sums.findForgotten(l)
	for len(l.frames) > depth {
		s.close(l, &outcome{end: end, truncated: cause})
	}
}

// truncateLowest closes the lowest frames of the lane, the upper ones first.
func (s *stacks) truncateLowest(l *lane, frames int, cause callevent.Cause) {
	s.sums.findForgotten(l)
	throws, attributes := l.belongingsBelow(frames)
	restThrows, restAttributes := throws, attributes
	for i := frames - 1; i >= 0; i-- {
		f := &l.frames[i]
		own := l.belongings(f, throws, attributes)
		throws -= int(f.throws)
		attributes -= int(f.attributes)
		s.conclude(l, f, l.parentOf(i), &own, &outcome{end: max(f.inner, f.start+1), truncated: cause})
	}
	l.removeLowest(frames, restThrows, restAttributes)
	if frames > 0 {
		s.sums.findPaths(l)
	}
	s.freeIfEmpty(l)
}

// close closes the top frame.
func (s *stacks) close(l *lane, o *outcome) {
	depth := len(l.frames) - 1
	f := &l.frames[depth]
	var own belongings
	if f.throws|uint32(f.attributes) != 0 {
		own = l.belongings(f, len(l.throws), len(l.attributes))
	}
	s.conclude(l, f, l.parentOf(depth), &own, o)
	if f.throws|uint32(f.attributes) != 0 {
		l.removeTop(&own)
	}
	l.frames = l.frames[:depth]
	if depth == 0 {
		s.freeIfEmpty(l)
	}
}

// conclude ends the call of a frame that is about to leave the stack. Every call passes
// here once, the left-out ones too, so this is the place for every output.
func (s *stacks) conclude(l *lane, f, parent *frame, own *belongings, o *outcome) {
	s.open--
	s.names.functions[f.function].open--
	if l.counts != nil {
		l.uncount(f)
	}
	if len(own.attributes) > 0 {
		s.attributes.release(own.attributes)
	}
	if parent != nil {
		parent.inner = max(parent.inner, o.end)
	}
	if o.truncated != 0 {
		s.out.Counters.Truncated[o.truncated]++
	}
	if s.sums.of != nil {
		s.sums.count(f, parent, o)
	}
	if s.leaveOut(l, f, parent, o) {
		return
	}
	emitted := o.truncated == 0 || !s.settings.DropTruncated
	switch {
	case !emitted:
		s.drop(f, parent, o.end-f.start)
	case s.settings.SumsOnly:
		s.out.Counters.Finished++
	case s.traces.undecided != nil:
		s.hold(f, parent, own, o)
	default:
		s.emit(l, f, parent, own, o)
	}
	if parent != nil {
		parent.kept = parent.kept || f.kept || emitted
	}
	s.traces.release(f.trace, s.out)
}

// drop leaves a truncated call out. The criteria of its trace apply to it.
func (s *stacks) drop(f, parent *frame, took int64) {
	s.traces.leaveOut(f.trace)
	if u := s.traces.undecided; u != nil {
		u.judge(u.waiting(f.trace), f.function, took, parent == nil || f.link != LinkNone, f.leftOut.Errors > 0)
	}
}

// leaveOut leaves the call out if rule 10 demands it, and reports whether it did. The
// length of a truncated frame is not known, so it does not count as short.
func (s *stacks) leaveOut(l *lane, f, parent *frame, o *outcome) bool {
	tooDeep := f.trace == noTrace
	short := o.end-f.start < s.settings.MinDuration && o.truncated == 0
	if !tooDeep && (!short || f.kept) {
		return false
	}
	s.out.Counters.LeftOut++
	if u := s.traces.undecided; u != nil {
		failed, wanted := o.unwound && u.keep.Errors, u.wants(f.function, o.end-f.start)
		if failed || wanted {
			u.judgeLeftOut(l.traceOf(f), failed, wanted)
		}
	}
	if !tooDeep {
		s.traces.leaveOut(f.trace)
		s.traces.release(f.trace, s.out)
	}
	if parent == nil {
		return true
	}
	parent.leftOut.Calls += f.leftOut.Calls + 1
	parent.leftOut.Errors += f.leftOut.Errors
	parent.leftOut.Time += o.end - f.start
	if o.unwound {
		parent.leftOut.Errors++
	}
	return true
}

// emit writes the call to the output.
func (s *stacks) emit(l *lane, f, parent *frame, own *belongings, o *outcome) {
	out := s.out
	out.Counters.Finished++
	call := out.append()
	call.Function = s.names.functions[f.function].name
	call.Lane, call.LaneName = l.id, s.names.laneNames[f.name].name
	call.Start, call.End = f.start, o.end
	call.Sequence, call.Parent = f.sequence, NoParent
	call.Trace = s.traces.rootOf(f)
	call.Truncated, call.Unwound, call.ErrorType, call.Line = o.truncated, o.unwound, s.names.exceptions[o.exception], o.line
	call.LeftOut, call.DroppedThrows = f.leftOut, f.droppedThrows
	if parent != nil {
		call.Parent = parent.sequence
		if f.link != LinkNone {
			call.Link, call.LinkTrace = f.link, s.traces.rootOf(parent)
		}
	}
	if len(own.throws) > 0 {
		call.Throws = out.appendThrows(own.throws)
	}
	if len(own.attributes)+len(o.attributes) > 0 {
		call.Attributes = out.appendAttributes(own.attributes, o.attributes)
	}
}

// hold keeps the call until its trace is decided.
func (s *stacks) hold(f, parent *frame, own *belongings, o *outcome) {
	u := s.traces.undecided
	if u.forgets(f.trace, s.traces.rootOf(f), &s.out.Counters.Keep) {
		s.out.Counters.Finished++
		return
	}
	// Other streams may have freed memory since this one was at the bound.
	u.atBound = u.atBound && u.keep.charge(0)
	for u.atBound && s.decideOldest(EarlyByBound) {
	}
	linkTrace := uint64(0)
	if parent != nil && f.link != LinkNone {
		linkTrace = s.traces.rootOf(parent)
	}
	s.out.Counters.Finished++
	u.hold(f, parent, linkTrace, own, o, &s.out.Counters)
}

// decideOldest decides the trace whose first call waits longest, with its calls so far. It
// reports false if no call waits.
func (s *stacks) decideOldest(by Early) bool {
	u := s.traces.undecided
	if u == nil || u.oldest == noTrace {
		return false
	}
	s.judgeOpen(u.oldest)
	criterion := u.decide(u.oldest, s.traces.all[u.oldest].root, false, s.out)
	s.out.Counters.Keep.Early[by][criterion]++
	return true
}

// decideAll decides all traces early, to free what their calls need. It reports false if no
// call waits.
func (s *stacks) decideAll(by Early) (decided bool) {
	for s.decideOldest(by) {
		decided = true
	}
	return decided
}

// decideOverdue decides the traces that wait for too long.
func (s *stacks) decideOverdue(now time.Duration) {
	for s.traces.undecided.isOverdue(now) {
		s.decideOldest(EarlyByTime)
	}
}

// judgeOpen notes the criteria that apply to the open calls of a trace, with their time so far. All frames of a trace are
// on one lane. The lowest is the longest of those without a caller in the trace. A frame that is too deep for a trace counts
// in that of the frames below it.
//
// A stack can have frames of a thousand traces. So the search begins at the root of the trace, and ends above its last frame.
func (s *stacks) judgeOpen(trace uint32) {
	u := s.traces.undecided
	index, ok := s.laneIDs[u.laneOf(trace)]
	if !ok {
		return
	}
	of, l := &s.traces.all[trace], &s.lanes[index]
	open := of.references
	if l.continuation == trace {
		open--
	}
	now, in, isLowest := s.clock.now+u.silence(s.clock.now), noTrace, true
	root := sort.Search(len(l.frames), func(i int) bool { return l.frames[i].sequence >= of.root })
	for i := root; i < len(l.frames) && (open > 0 || in == trace); i++ {
		f := &l.frames[i]
		if f.trace != noTrace {
			in = f.trace
		}
		if in != trace {
			continue
		}
		if f.trace == trace {
			open--
		}
		u.judge(u.waiting(trace), f.function, now-f.start, isLowest, false)
		isLowest = false
	}
}

// rename applies the renames of a batch to lanes and to their open frames.
func (s *stacks) rename(all []callevent.Rename) {
	earliest := s.earliest()
	for i := range all {
		s.renames.accept(&all[i], earliest, &s.out.Counters)
		if all[i].Reused {
			s.noteReuse(&all[i])
		}
	}
	for i := range all {
		h := s.renames.histories[all[i].Lane]
		if !h.changed {
			continue
		}
		if index, ok := s.laneIDs[h.id]; ok {
			l := &s.lanes[index]
			l.follow(h)
			if !l.isShared() {
				l.renameFrames(s.clock.offset)
			}
		}
		h.markOld()
	}
}

// noteReuse notes that another thread has a lane.
func (s *stacks) noteReuse(from *callevent.Rename) {
	r := s.reuses[from.Lane]
	if r == nil {
		r = &reuse{}
		s.reuses[from.Lane] = r
		s.names.chargeLanes(reuseBytes)
		if index, ok := s.laneIDs[from.Lane]; ok {
			s.lanes[index].reuse = r
		}
	} else if !r.isNew(from) {
		return
	}
	r.accept(from)
}

// earliest is the earliest time, by the source's clock, for which the stream remembers names of lanes.
func (s *stacks) earliest() int64 { return s.clock.earliest(pastMargin) }

// moveNames moves the names of renames and of open frames in a sweep.
func (s *stacks) moveNames(sweep *laneSweep) {
	s.renames.moveNames(sweep)
	s.traces.undecided.moveNames(sweep)
	for i := range s.lanes {
		l := &s.lanes[i]
		l.follow(l.history)
		for j := range l.frames {
			sweep.move(&l.frames[j].name)
		}
	}
}

// forget forgets all lanes with their names, and begins new sums. No lane has open frames.
func (s *stacks) forget() {
	s.sums.end(s.lanes, s.out)
	s.sums.begin()
	s.releaseContinuations()
	s.traces.undecided.forgetNames()
	s.lanes, s.laneIDs, s.bytes = nil, map[uint64]int32{}, 0
	s.renames.histories, s.reuses = map[uint64]*history{}, map[uint64]*reuse{}
}

// releaseContinuations releases the traces that lanes would continue. No frame is open, so all
// traces are decided.
func (s *stacks) releaseContinuations() {
	for i := range s.lanes {
		s.traces.release(s.lanes[i].continuation, s.out)
	}
}

// memory is about the bytes of lanes, of sums, of finished calls that wait, and of all attributes
// of the stream.
func (s *stacks) memory() int {
	return s.bytes + cap(s.lanes)*laneBytes + int(s.attributes) + s.traces.undecided.bytes() + s.sums.bytes()
}

// freeIfEmpty frees the memory of an empty stack that was deep.
func (s *stacks) freeIfEmpty(l *lane) {
	if len(l.frames) == 0 && l.bytes() > keptStack {
		s.free(l)
	}
}

// free frees the memory of an empty stack.
func (s *stacks) free(l *lane) {
	s.bytes -= l.bytes()
	l.frames, l.throws, l.attributes, l.counts = nil, nil, nil, nil
}
