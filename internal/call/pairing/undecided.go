// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math"
	"time"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// undecided has the finished calls of traces that are not decided yet, see Keep. It writes
// kept calls to the output as stacks would have written them, in the same order. A nil
// *undecided has none.
type undecided struct {
	keep *Keep
	// random returns the random number of a trace, from the sequence number of its root.
	random func(root uint64) uint64
	names  *names

	// traces are the traces with waiting calls, by their index in traces.all. Those with calls
	// are in a queue by the time since which their first one waits.
	traces         []waitingTrace
	oldest, newest uint32
	// now is the latest monotonic time that the stream has received.
	now time.Duration
	// heard is the time of the stream's last event, by its own clock, and heardAt the monotonic time at which it arrived, or at
	// which an event waited last.
	heard   int64
	heardAt time.Duration

	// The items of all lists of traces.
	records    arena[record]
	details    arena[details]
	throws     arena[recordedThrow]
	attributes arena[attribute]
	repeats    arena[repeats]
	// groups finds the records of repeated calls.
	groups openGroups
	// attributeMemory is that of the stream. valueBytes is the part of waiting calls.
	attributeMemory *attributeMemory
	valueBytes      int
	// charged is the memory in the account of keep.
	charged int64
	// atBound: the memory of all streams was above its bound when this stream's part changed.
	atBound bool

	// wanted is the least duration of a call that keeps its trace, by function.
	wanted []int64
	// onlyRatio: no criterion depends on calls, so the ID of a trace decides when its first
	// call ends.
	onlyRatio bool
}

// waitingTrace is a trace with finished calls that wait.
type waitingTrace struct {
	// records are the calls in the order in which they ended. The other lists have the parts
	// that few calls have, in the order of their calls.
	records, details, throws, attributes, repeats list
	// groups is the top of the trace's stack in undecided.groups, if records has calls.
	groups       uint32
	older, newer uint32
	// folded is the number of calls in records of earlier ones.
	folded int
	since  time.Duration
	// slow: Keep.SlowerThan applies. It stays so until the trace ends. failed and named: the
	// other criteria apply to the waiting calls.
	slow, failed, named bool
	fate                fate
}

// fate is the decision about a trace whose ID decides alone, if it is known.
type fate uint8

const (
	// fateOpen: no call has ended yet, or the ID does not decide alone.
	fateOpen fate = iota
	// fateKept and fateForgotten: the trace will be kept or forgotten. Calls of a forgotten one do
	// not wait.
	fateKept
	fateForgotten
)

// record is a finished call, or a group of repeated calls. It has no pointers, because the garbage
// collector should not look at a million of them.
type record struct {
	sequence, parent uint64
	start, end       int64
	function, name   uint32
	exception, line  uint32
	// repeats is the place in undecided.repeats and 1 more; 0: one call.
	repeats   uint32
	truncated callevent.Cause
	link      Link
	unwound   bool
	// detailed: the call has details.
	detailed bool
}

// details are the parts of a call that few calls have.
type details struct {
	leftOut                           LeftOut
	linkTrace                         uint64
	droppedThrows, throws, attributes uint32
}

// recordedThrow is a Throw without pointers.
type recordedThrow struct {
	time            int64
	exception, line uint32
}

// unwanted is the least duration of a call that keeps its trace if the function is not wanted.
const unwanted = math.MaxInt64

const waitingTraceBytes = int(unsafe.Sizeof(waitingTrace{}))

// newUndecided returns nil if all traces are kept.
func newUndecided(keep *Keep, random func(root uint64) uint64, n *names, attributes *attributeMemory) *undecided {
	if keep == nil {
		return nil
	}
	return &undecided{
		keep: keep, random: random, names: n, attributeMemory: attributes, oldest: noTrace, newest: noTrace,
		groups: newOpenGroups(), onlyRatio: keep.SlowerThan == 0 && !keep.Errors && keep.Function == nil,
	}
}

// forgets reports whether the finished call of a trace with this root needs no record, because
// only the ID of the trace could keep it, and does not. It counts such a call.
func (u *undecided) forgets(id uint32, root uint64, c *KeepCounters) bool {
	if !u.onlyRatio {
		return false
	}
	t := u.waiting(id)
	if t.fate == fateOpen {
		t.fate = fateKept
		if !u.isDrawn(root) {
			t.fate = fateForgotten
			c.Traces[CriterionNone]++
		}
	}
	if t.fate == fateKept {
		return false
	}
	c.Calls[CriterionNone]++
	return true
}

// waiting returns the waiting calls of a trace.
func (u *undecided) waiting(id uint32) *waitingTrace {
	for int(id) >= len(u.traces) {
		u.traces = append(u.traces, waitingTrace{groups: noGroups})
	}
	return &u.traces[id]
}

// hold keeps a finished call until its trace is decided. linkTrace is the parent's trace.
func (u *undecided) hold(f, parent *frame, linkTrace uint64, own *belongings, o *outcome, c *Counters) {
	t := u.waiting(f.trace)
	if t.records.count == 0 {
		u.enqueue(f.trace)
	}
	var groups *callerGroups
	if o.end-f.start < u.keep.FoldShorterThan && canFold(f, parent, own, o) {
		groups = u.groups.of(&t.groups, parent.sequence)
		if u.fold(t, groups, f, o) {
			u.settle()
			return
		}
	}
	r := u.records.append(&t.records)
	if groups != nil {
		groups.remember(f.function, u.records.lastPlace(&t.records))
	}
	// Field by field: a literal would be built elsewhere and copied.
	*r = record{}
	r.sequence, r.parent, r.start, r.end = f.sequence, NoParent, f.start, o.end
	r.function, r.name, r.line = f.function, f.name, o.line
	r.truncated, r.unwound, r.exception = o.truncated, o.unwound, o.exception
	if parent != nil {
		r.parent, r.link = parent.sequence, f.link
	}
	attributes := 0
	if len(own.attributes)+len(o.attributes) > 0 {
		attributes = u.holdAttributes(t, own.attributes, o.attributes, c)
	}
	if f.leftOut.Calls|uint64(f.droppedThrows)|uint64(len(own.throws)+attributes)|uint64(r.link) != 0 {
		r.detailed = true
		*u.details.append(&t.details) = details{
			leftOut: f.leftOut, linkTrace: linkTrace, droppedThrows: f.droppedThrows,
			throws: uint32(len(own.throws)), attributes: uint32(attributes),
		}
		for i := range own.throws {
			thrown := &own.throws[i]
			*u.throws.append(&t.throws) = recordedThrow{thrown.Time, u.names.exceptionIDs[thrown.Type], thrown.Line}
		}
	}
	u.judge(t, f.function, o.end-f.start, parent == nil || f.link != LinkNone, o.unwound || f.leftOut.Errors > 0)
	// Other records take no memory.
	if r.detailed || groups != nil || t.records.count%chunkLength == 1 {
		u.settle()
	}
}

// canFold reports whether a short call can be one of a group of repeated calls. It has a caller, its end
// was seen, and it has no kept callee, no exceptions and no attributes. It did not fail: a call that returned
// an error has no exception.
func canFold(f, parent *frame, own *belongings, o *outcome) bool {
	return parent != nil && !f.kept && o.truncated == 0 && !o.unwound &&
		len(own.throws)+int(f.droppedThrows)+len(own.attributes)+len(o.attributes) == 0
}

// fold adds the call to the record of an earlier one of the caller's groups: that of the same
// function, lane name and line. It reports false if there is none.
func (u *undecided) fold(t *waitingTrace, groups *callerGroups, f *frame, o *outcome) bool {
	for i := int(groups.count) - 1; i >= 0; i-- {
		if groups.latest[i].function != f.function {
			continue
		}
		r := u.records.at(groups.latest[i].record)
		if r.name != f.name || r.line != o.line {
			continue
		}
		groups.moveToEnd(i)
		if r.repeats == 0 {
			took := r.end - r.start
			*u.repeats.append(&t.repeats) = repeats{calls: 1, least: took, greatest: took, total: took}
			r.repeats = u.repeats.lastPlace(&t.repeats) + 1
		}
		took := o.end - f.start
		u.repeats.at(r.repeats-1).include(took, &f.leftOut)
		r.end = o.end
		t.folded++
		u.judge(t, f.function, took, f.link != LinkNone, f.leftOut.Errors > 0)
		return true
	}
	return false
}

// holdAttributes keeps the attributes of a call: those of its frame, and those of the event
// that ended it as far as they have room. It returns their number.
func (u *undecided) holdAttributes(t *waitingTrace, ofFrame, ofEnd []attribute, c *Counters) int {
	last := min(len(ofEnd), maxAttributes-len(ofFrame))
	c.DroppedAttributes += uint64(len(ofEnd) - last)
	for _, attributes := range [...][]attribute{ofFrame, ofEnd[:last]} {
		u.attributeMemory.charge(attributes)
		for _, a := range attributes {
			*u.attributes.append(&t.attributes) = a
			u.valueBytes += a.key.record() + a.value.record()
		}
	}
	return len(ofFrame) + last
}

// judge notes the criteria that apply to a call. isRoot: it has no caller in the trace.
func (u *undecided) judge(t *waitingTrace, function uint32, took int64, isRoot, failed bool) {
	t.slow = t.slow || isRoot && u.isSlow(took)
	t.failed = t.failed || u.keep.Errors && failed
	t.named = t.named || u.wants(function, took)
}

// judgeLeftOut notes the criteria that apply to a left-out call, which has no record. Its caller can stay open for longer than
// this piece of the trace.
func (u *undecided) judgeLeftOut(trace uint32, failed, wanted bool) {
	if trace == noTrace {
		return
	}
	t := u.waiting(trace)
	t.failed, t.named = t.failed || failed, t.named || wanted
}

// wants reports whether Keep.Function applies to a call.
func (u *undecided) wants(function uint32, took int64) bool {
	if u.keep.Function == nil {
		return false
	}
	if int(function) >= len(u.wanted) {
		u.learnFunctions()
	}
	return took >= u.wanted[function]
}

// isSlow reports whether Keep.SlowerThan applies to the duration of a root.
func (u *undecided) isSlow(took int64) bool {
	return u.keep.SlowerThan > 0 && took >= u.keep.SlowerThan
}

// learnFunctions asks which of the stream's new functions are wanted.
func (u *undecided) learnFunctions() {
	for _, f := range u.names.functions[len(u.wanted):] {
		least, wanted := u.keep.Function(f.name.Qualified)
		if !wanted {
			least = unwanted
		}
		u.wanted = append(u.wanted, least)
	}
}

// decide keeps or forgets the waiting calls of a trace with this root. ended: the trace can have no further
// calls. It returns the criterion that applies.
func (u *undecided) decide(id uint32, root uint64, ended bool, out *Output) (by Criterion) {
	if int(id) >= len(u.traces) {
		return CriterionNone
	}
	t := &u.traces[id]
	if spans := t.records.count; spans > 0 {
		u.dequeue(id)
		calls := uint64(spans + t.folded)
		by = u.criterion(t, root)
		c := &out.Counters.Keep
		if limiter := u.keep.Limiter; by != CriterionNone && limiter != nil && !limiter.allows(by, spans) {
			c.LimitedTraces[by]++
			c.LimitedCalls[by] += calls
		} else {
			c.Traces[by]++
			c.Calls[by] += calls
			if by != CriterionNone {
				c.RepeatedCalls += uint64(t.folded)
				u.emit(t, root, by, out)
			}
		}
		u.forgetCalls(t)
	}
	t.failed, t.named = false, false
	if ended {
		t.slow, t.fate = false, fateOpen
	}
	return by
}

// criterion is the first that applies.
func (u *undecided) criterion(t *waitingTrace, root uint64) Criterion {
	switch {
	case t.slow:
		return CriterionSlow
	case t.failed:
		return CriterionError
	case t.named:
		return CriterionFunction
	case u.isDrawn(root):
		return CriterionRatio
	}
	return CriterionNone
}

// isDrawn reports whether Keep.Threshold keeps the trace with this root.
func (u *undecided) isDrawn(root uint64) bool {
	return u.keep.Threshold < NoThreshold && u.random(root) >= u.keep.Threshold
}

// emit writes the waiting calls of the trace to the output.
func (u *undecided) emit(t *waitingTrace, root uint64, by Criterion, out *Output) {
	records, allDetails := u.records.read(&t.records), u.details.read(&t.details)
	throws, attributes := u.throws.read(&t.throws), u.attributes.read(&t.attributes)
	for range t.records.count {
		r := records.next()
		name := &u.names.laneNames[r.name]
		call := out.append()
		call.Function, call.Lane, call.LaneName = u.names.functions[r.function].name, name.id, name.name
		call.Start, call.End = r.start, r.end
		call.Sequence, call.Parent, call.Trace, call.Kept = r.sequence, r.parent, root, by
		call.Truncated, call.Unwound, call.ErrorType, call.Line = r.truncated, r.unwound, u.names.exceptions[r.exception], r.line
		if r.repeats != 0 {
			of := u.repeats.at(r.repeats - 1)
			call.LeftOut, call.Repeated = of.leftOut, out.appendRepeated(Repeated{of.calls, of.least, of.greatest, of.total})
		}
		if !r.detailed {
			continue
		}
		d := allDetails.next()
		call.LeftOut.include(&d.leftOut)
		call.DroppedThrows = d.droppedThrows
		if r.link != LinkNone {
			call.Link, call.LinkTrace = r.link, d.linkTrace
		}
		if d.throws > 0 {
			call.Throws.From = int32(len(out.Throws))
			for range d.throws {
				thrown := throws.next()
				out.Throws = append(out.Throws, Throw{thrown.time, u.names.exceptions[thrown.exception], thrown.line})
			}
			call.Throws.To = int32(len(out.Throws))
		}
		if d.attributes > 0 {
			call.Attributes.From = int32(len(out.Attributes))
			for range d.attributes {
				out.Attributes = append(out.Attributes, attributes.next().public())
			}
			call.Attributes.To = int32(len(out.Attributes))
		}
	}
}

// forgetCalls frees the memory of the trace's waiting calls.
func (u *undecided) forgetCalls(t *waitingTrace) {
	attributes := u.attributes.read(&t.attributes)
	for range t.attributes.count {
		a := attributes.next()
		u.attributeMemory.release([]attribute{*a})
		u.valueBytes -= a.key.forget() + a.value.forget()
		*a = attribute{}
	}
	u.records.release(&t.records)
	u.details.release(&t.details)
	u.throws.release(&t.throws)
	u.attributes.release(&t.attributes)
	u.repeats.release(&t.repeats)
	u.groups.forget(&t.groups)
	t.folded = 0
	u.settle()
}

// settle updates the account of keep.
func (u *undecided) settle() {
	held := int64(u.records.heldBytes() + u.details.heldBytes() + u.throws.heldBytes() + u.attributes.heldBytes() +
		u.repeats.heldBytes() + u.groups.heldBytes() + u.valueBytes)
	if held != u.charged {
		u.atBound = u.keep.charge(held - u.charged)
		u.charged = held
	}
}

// enqueue puts the trace at the end of the queue.
func (u *undecided) enqueue(id uint32) {
	t := &u.traces[id]
	t.since, t.older, t.newer = u.now, u.newest, noTrace
	if u.newest == noTrace {
		u.oldest = id
	} else {
		u.traces[u.newest].newer = id
	}
	u.newest = id
}

// dequeue removes the trace from the queue.
func (u *undecided) dequeue(id uint32) {
	t := &u.traces[id]
	if t.older == noTrace {
		u.oldest = t.newer
	} else {
		u.traces[t.older].newer = t.newer
	}
	if t.newer == noTrace {
		u.newest = t.older
	} else {
		u.traces[t.newer].older = t.older
	}
}

// setNow sets the monotonic time. now is that of the stream.
func (u *undecided) setNow(now time.Duration) {
	if u != nil {
		u.now = u.time(now)
	}
}

// time is the monotonic time by which calls wait. now is that of the stream.
func (u *undecided) time(now time.Duration) time.Duration {
	if u.keep.Now != nil {
		return u.keep.Now()
	}
	return now
}

// noteStep notes at the end of a step whether the stream's clock has advanced to another time. waits: events wait for missing ones.
func (u *undecided) noteStep(clock int64, waits bool) {
	if u != nil && (waits || clock != u.heard) {
		u.heard, u.heardAt = clock, u.now
	}
}

// silence is the time in nanoseconds since the last event, if clock is the time of that event. A thread that makes no calls has
// no events, and its open calls go on.
func (u *undecided) silence(clock int64) int64 {
	if clock != u.heard {
		return 0
	}
	return int64(u.time(u.now) - u.heardAt)
}

// oldestSince returns the time since which the oldest waiting call waits.
func (u *undecided) oldestSince() (since time.Duration, waits bool) {
	if u == nil || u.oldest == noTrace {
		return 0, false
	}
	return u.traces[u.oldest].since, true
}

// heldBytes is the stream's part of Keep.HeldBytes.
func (u *undecided) heldBytes() int64 {
	if u == nil {
		return 0
	}
	return u.charged
}

// isOverdue reports whether the oldest trace waits for at least Keep.DecideAfter.
func (u *undecided) isOverdue(now time.Duration) bool {
	since, waits := u.oldestSince()
	return waits && u.keep.DecideAfter > 0 && u.time(now)-since >= u.keep.DecideAfter
}

// laneOf is the ID of the lane of a trace with waiting calls.
func (u *undecided) laneOf(id uint32) uint64 {
	first := u.records.read(&u.traces[id].records)
	return u.names.laneNames[first.next().name].id
}

// moveNames moves the names of lanes of all waiting calls in a sweep.
func (u *undecided) moveNames(sweep *laneSweep) {
	if u == nil {
		return
	}
	for i := range u.traces {
		records := u.records.read(&u.traces[i].records)
		for range u.traces[i].records.count {
			sweep.move(&records.next().name)
		}
	}
}

// forgetNames forgets what depends on the numbers of names. No call waits.
func (u *undecided) forgetNames() {
	if u != nil {
		u.wanted, u.traces = nil, nil
	}
}

// rests reports whether chunks were free for the whole time since the last shrink.
func (u *undecided) rests() bool {
	return u != nil && (u.records.idle|u.details.idle|u.throws.idle|u.attributes.idle|u.repeats.idle != 0 || u.groups.rests())
}

// shrink frees a part of the chunks that no trace has needed since the last shrink.
func (u *undecided) shrink() {
	if u != nil {
		u.records.trim()
		u.details.trim()
		u.throws.trim()
		u.attributes.trim()
		u.repeats.trim()
		u.groups.trim()
	}
}

// spare frees all chunks that no trace needs.
func (u *undecided) spare() {
	if u != nil {
		u.records.trimAll()
		u.details.trimAll()
		u.throws.trimAll()
		u.attributes.trimAll()
		u.repeats.trimAll()
		u.groups.trim()
	}
}

// bytes is about the memory of waiting calls without the values of attributes, which the stream counts.
func (u *undecided) bytes() int {
	if u == nil {
		return 0
	}
	return u.records.bytes() + u.details.bytes() + u.throws.bytes() + u.attributes.bytes() + u.repeats.bytes() + u.groups.bytes() +
		cap(u.traces)*waitingTraceBytes + cap(u.wanted)*int(unsafe.Sizeof(int64(0)))
}
