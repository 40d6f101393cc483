// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// wrong computes the counts of the stream again, and checks its state between two calls. It returns the first fault;
// empty: none.
func (s *Stream) wrong() string {
	for _, check := range []func() string{s.wrongOrder, s.wrongStacks, s.wrongTraces, s.wrongNames, s.wrongUndecided} {
		if wrong := check(); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (s *Stream) wrongOrder() string {
	waiting, attributed := 0, 0
	for number := s.order.window.low; s.order.window.count > 0 && number < s.order.window.high; number++ {
		if s.order.window.has(number) {
			waiting++
			if s.order.window.at(number).attributes {
				attributed++
			}
		}
	}
	occupied := 0
	made := 0
	for _, page := range s.order.window.pages {
		made += len(page)
		for _, slot := range page {
			if slot.kind != 0 {
				occupied++
			}
		}
	}
	switch {
	case made != s.order.window.made:
		return fmt.Sprintf("%d places, counted %d", made, s.order.window.made)
	case s.stacks.out != nil:
		return "the stream keeps an output"
	case waiting != s.order.window.count || occupied != waiting:
		return fmt.Sprintf("%d events wait in the window's range and %d in all of it, counted %d", waiting, occupied, s.order.window.count)
	case attributed != len(s.order.attributes.byNumber):
		return fmt.Sprintf("%d waiting events have attributes, kept are those of %d", attributed, len(s.order.attributes.byNumber))
	case s.order.window.count > 0 && s.order.window.first() <= s.order.next:
		return fmt.Sprintf("%d waits, but next is %d", s.order.window.first(), s.order.next)
	case s.order.window.count > 0 && s.order.window.high-s.order.window.first() > uint64(s.settings.MaxEvents):
		return fmt.Sprintf("the window covers %d numbers", s.order.window.high-s.order.window.first())
	case s.order.ended && (s.order.window.count > 0 || s.stacks.open > 0 || len(s.order.barriers.pending) > 0):
		return "the stream has ended and holds something"
	case !slices.IsSortedFunc(s.order.barriers.pending, compareBarriers):
		return "barriers are not sorted"
	case len(s.order.barriers.pending) == 0 && s.order.barriers.stop != never,
		len(s.order.barriers.pending) > 0 && s.order.barriers.stop != s.order.barriers.pending[0].From:
		return fmt.Sprintf("stop is %d with barriers %v", s.order.barriers.stop, s.order.barriers.pending)
	case s.order.barriers.stop <= s.order.next:
		return fmt.Sprintf("a barrier before %d has not been obeyed, next is %d", s.order.barriers.stop, s.order.next)
	case len(s.order.barriers.pending) > maxPending || len(s.order.barriers.heard) > maxHeard || len(s.order.passed) > maxRanges:
		return "a list is longer than its bound"
	}
	last := uint64(0)
	for _, p := range s.order.passed {
		if p.from < last || p.from >= p.to || p.to > s.order.next {
			return fmt.Sprintf("passed numbers %+v, next is %d", s.order.passed, s.order.next)
		}
		last = p.to
	}
	return ""
}

func (s *Stream) wrongStacks() string {
	open, byFunction := 0, make([]int32, len(s.names.functions))
	stackBytes := 0
	kept := slices.Collect(maps.Values(s.order.attributes.byNumber))
	ownBytes := 0
	for _, a := range kept {
		ownBytes += len(a) * attributeBytes
	}
	for i := range s.stacks.lanes {
		l := &s.stacks.lanes[i]
		if s.stacks.laneIDs[l.id] != int32(i) {
			return fmt.Sprintf("lane %d is not number %d", l.id, i)
		}
		stackBytes += l.bytes()
		kept = append(kept, l.attributes)
		counts := map[uint32]int32{}
		for _, f := range l.frames {
			counts[f.function]++
		}
		if l.counts != nil && !maps.Equal(counts, l.counts) {
			return fmt.Sprintf("lane %d has frames of functions %v, counted %v", l.id, counts, l.counts)
		}
		throws, start, sequence := 0, int64(-1<<63), uint64(0)
		for depth, f := range l.frames {
			open++
			byFunction[f.function]++
			throws += int(f.throws)
			if f.start < start || depth > 0 && f.sequence <= sequence || f.inner < f.start || f.inner > s.stacks.clock.now+1 {
				return fmt.Sprintf("lane %d, frame %d: %+v above %d %d", l.id, depth, f, start, sequence)
			}
			start, sequence = f.start, f.sequence
		}
		if throws != len(l.throws) {
			return fmt.Sprintf("lane %d has %d throws, its frames %d", l.id, len(l.throws), throws)
		}
		if len(l.frames) > s.settings.MaxFrames {
			return fmt.Sprintf("lane %d has %d frames", l.id, len(l.frames))
		}
	}
	if len(s.stacks.laneIDs) != len(s.stacks.lanes) || len(s.stacks.lanes) > s.settings.MaxLanes {
		return fmt.Sprintf("%d lanes with %d IDs", len(s.stacks.lanes), len(s.stacks.laneIDs))
	}
	kept = append(kept, s.stacks.traces.undecided.allAttributes())
	ownBytes += sizeOfValues(kept)
	if stackBytes != s.stacks.bytes || ownBytes != int(s.stacks.attributes) {
		return fmt.Sprintf("stacks take %d bytes and attributes %d, counted %d and %d", stackBytes, ownBytes, s.stacks.bytes, s.stacks.attributes)
	}
	if open != s.stacks.open {
		return fmt.Sprintf("%d frames are open, counted %d", open, s.stacks.open)
	}
	for i, f := range s.names.functions {
		if f.open != byFunction[i] {
			return fmt.Sprintf("%d frames of %s are open, counted %d", byFunction[i], f.name.Qualified, f.open)
		}
	}
	return ""
}

func (s *Stream) wrongTraces() string {
	references := make([]int, len(s.stacks.traces.all))
	for i := range s.stacks.lanes {
		if c := s.stacks.lanes[i].continuation; c != noTrace {
			references[c]++
		}
		for _, f := range s.stacks.lanes[i].frames {
			if f.trace != noTrace {
				references[f.trace]++
			}
		}
	}
	for i, t := range s.stacks.traces.all {
		free := slices.Contains(s.stacks.traces.free, uint32(i))
		if t.references != references[i] || free != (references[i] == 0) {
			return fmt.Sprintf("trace of %d has %d references, counted %d, free: %t", t.root, references[i], t.references, free)
		}
		if limit := s.settings.MaxSpansPerTrace; limit > 0 && t.references > 0 && (t.frames > limit || t.frames < 0) {
			return fmt.Sprintf("trace of %d has %d frames", t.root, t.frames)
		}
	}
	return ""
}

func (s *Stream) wrongNames() string {
	if wrong := s.names.wrongBytes(&s.stacks); wrong != "" {
		return wrong
	}
	for id, h := range s.stacks.renames.histories {
		if h.id != id || h.changed || len(h.renames) == 0 || len(h.renames) > maxRenames {
			return fmt.Sprintf("lane %d has the history %+v", id, h)
		}
		if !slices.IsSortedFunc(h.renames, s.stacks.renames.compare) {
			return fmt.Sprintf("the renames of lane %d are not sorted: %+v", id, h.renames)
		}
		if slices.ContainsFunc(h.renames, func(r rename) bool { return r.isNew }) {
			return fmt.Sprintf("lane %d has a new rename after its batch: %+v", id, h.renames)
		}
	}
	for i := range s.stacks.lanes {
		want := lane{id: s.stacks.lanes[i].id, from: noTime}
		want.follow(s.stacks.renames.histories[want.id])
		if l := &s.stacks.lanes[i]; l.history != want.history || l.from != want.from || l.name != want.name {
			return fmt.Sprintf("lane %d is called %d from %d, expected %d from %d", l.id, l.name, l.from, want.name, want.from)
		}
	}
	return ""
}

// wrongBytes counts the memory of names again, and checks their numbers.
func (n *names) wrongBytes(s *stacks) string {
	lanes := len(n.laneNames)*nameOverhead + len(s.renames.histories)*historyBytes + len(s.reuses)*reuseBytes
	for i := range n.laneNames {
		l := &n.laneNames[i]
		lanes += len(l.name)
		if id, ok := n.laneNameIDs[callevent.Lane{ID: l.id, Name: l.name}]; !ok || id != uint32(i) {
			return fmt.Sprintf("the name %q of lane %d is %d, expected %d", l.name, l.id, id, i)
		}
	}
	for _, h := range s.renames.histories {
		lanes += len(h.renames) * renameBytes
	}
	bytes := lanes
	for _, f := range n.functions {
		bytes += len(f.name.Qualified) + len(f.name.Display) + len(f.name.Text) + len(f.name.File) + functionOverhead
	}
	for _, e := range n.exceptions[min(1, len(n.exceptions)):] {
		bytes += len(e) + nameOverhead
	}
	if lanes != n.bytesOfLanes || bytes != n.bytes || n.sweptBytes > n.bytesOfLanes || len(n.laneNameIDs) != len(n.laneNames) {
		return fmt.Sprintf("names take %d bytes, and those of %d lanes %d; counted %d and %d, swept %d of %d",
			bytes, len(n.laneNames), lanes, n.bytes, n.bytesOfLanes, n.sweptBytes, len(n.laneNameIDs))
	}
	return ""
}

// allAttributes are the attributes of all waiting calls.
func (u *undecided) allAttributes() (all []attribute) {
	if u == nil {
		return nil
	}
	for i := range u.traces {
		attributes := u.attributes.read(&u.traces[i].attributes)
		for range u.traces[i].attributes.count {
			all = append(all, *attributes.next())
		}
	}
	return all
}

func (s *Stream) wrongUndecided() string {
	u := s.stacks.traces.undecided
	if u == nil {
		return ""
	}
	waiting, chunks, callers := 0, 0, 0
	for i := range u.traces {
		t := &u.traces[i]
		for _, l := range []list{t.records, t.details, t.throws, t.attributes, t.repeats} {
			chunks += (l.count + chunkLength - 1) / chunkLength
		}
		references := 0
		if i < len(s.stacks.traces.all) {
			references = s.stacks.traces.all[i].references
		}
		if references == 0 && (t.records != list{} || t.details != list{} || t.throws != list{} || t.attributes != list{} || t.repeats != list{} ||
			t.groups != noGroups || t.folded != 0 || t.slow || t.failed || t.named) {
			return fmt.Sprintf("a trace that has ended is undecided: %+v", t)
		}
		if t.records.count > 0 {
			waiting++
		}
		records, detailed, throws, attributes := u.records.read(&t.records), u.details.read(&t.details), 0, 0
		folded, groups := 0, 0
		for range t.records.count {
			r := records.next()
			if r.repeats != 0 {
				of := u.repeats.at(r.repeats - 1)
				folded, groups = folded+int(of.calls)-1, groups+1
				if of.calls < 2 || of.least > of.greatest || of.total > r.end-r.start {
					return fmt.Sprintf("a group %+v of %+v", of, r)
				}
			}
			if r.detailed {
				d := detailed.next()
				throws, attributes = throws+int(d.throws), attributes+int(d.attributes)
			}
		}
		if throws != t.throws.count || attributes != t.attributes.count {
			return fmt.Sprintf("%d throws and %d attributes of %+v", throws, attributes, t)
		}
		if folded != t.folded || groups != t.repeats.count {
			return fmt.Sprintf("%d calls in %d groups of %+v", folded, groups, t)
		}
		for at, above := t.groups, NoParent; at != noGroups; at = u.groups.all[at].below {
			g := &u.groups.all[at]
			if g.caller >= above || g.count == 0 || t.records.count == 0 {
				return fmt.Sprintf("groups %+v below %d of %+v", g, above, t)
			}
			above, callers = g.caller, callers+1
		}
	}
	queued, older := 0, noTrace
	for id := u.oldest; id != noTrace; id = u.traces[id].newer {
		t := &u.traces[id]
		if t.older != older || t.records.count == 0 || older != noTrace && u.traces[older].since > t.since {
			return fmt.Sprintf("trace %d in the queue after %d: %+v", id, older, t)
		}
		queued, older = queued+1, id
	}
	if queued != waiting || u.newest != older {
		return fmt.Sprintf("%d traces wait, %d in the queue up to %d, expected %d", waiting, queued, u.newest, older)
	}
	inArenas := 0
	for _, fault := range []string{
		wrongArena(&u.records, &inArenas), wrongArena(&u.details, &inArenas), wrongArena(&u.throws, &inArenas), wrongArena(&u.attributes, &inArenas),
		wrongArena(&u.repeats, &inArenas),
	} {
		if fault != "" {
			return fault
		}
	}
	for _, c := range u.attributes.free {
		if u.attributes.chunks[c].items != [chunkLength]attribute{} {
			return "a free chunk has attributes"
		}
	}
	values := sizeOfValues([][]attribute{u.allAttributes()})
	free := 0
	for at := u.groups.free; at != noGroups; at = u.groups.all[at].below {
		free++
	}
	if u.groups.used != callers || free+callers != len(u.groups.all) {
		return fmt.Sprintf("%d callers with groups, counted %d, %d free of %d", callers, u.groups.used, free, len(u.groups.all))
	}
	held := int64(u.records.heldBytes() + u.details.heldBytes() + u.throws.heldBytes() + u.attributes.heldBytes() +
		u.repeats.heldBytes() + callers*callerGroupsBytes + values)
	if chunks != inArenas || values != u.valueBytes || held != u.charged {
		return fmt.Sprintf("%d chunks, counted %d; values of %d bytes, counted %d; %d bytes, counted %d", chunks, inArenas, values, u.valueBytes, held, u.charged)
	}
	return ""
}

// wrongArena checks the places of an arena, and adds the chunks that lists have.
func wrongArena[T any](a *arena[T], used *int) string {
	made := 0
	for _, c := range a.chunks {
		if c != nil {
			made++
		}
	}
	*used += made - len(a.free)
	if made != len(a.chunks)-len(a.missing) || a.idle > len(a.free) {
		return fmt.Sprintf("%d chunks of %d places, %d free, %d idle, %d missing", made, len(a.chunks), len(a.free), a.idle, len(a.missing))
	}
	return ""
}

// wrongSpans returns the first fault in the spans of an ended stream; empty: none. clockSet: the clock was set again,
// so bottom frames may overlap.
func wrongSpans(settings *Settings, spans []finished, clockSet bool) string {
	byNumber := map[uint64]finished{}
	inTrace := map[uint64]int{}
	for _, s := range spans {
		if s.End <= s.Start {
			return fmt.Sprintf("no length: %s", s)
		}
		if _, twice := byNumber[s.Sequence]; twice {
			return fmt.Sprintf("twice: %s", s)
		}
		byNumber[s.Sequence] = s
		inTrace[s.Trace]++
		if limit := settings.MaxSpansPerTrace; limit > 0 && inTrace[s.Trace] > limit {
			return fmt.Sprintf("trace %d has more than %d spans", s.Trace, limit)
		}
		for _, t := range s.Throws {
			if t.Time < s.Start || t.Time > s.End {
				return fmt.Sprintf("throw outside: %s", s)
			}
		}
	}
	siblings := map[[2]uint64][]finished{}
	for _, s := range spans {
		siblings[[2]uint64{s.Lane, s.Parent}] = append(siblings[[2]uint64{s.Lane, s.Parent}], s)
		if s.Parent == NoParent {
			if s.Link != LinkNone {
				return fmt.Sprintf("a link without a parent: %s", s)
			}
			continue
		}
		parent, ok := byNumber[s.Parent]
		if !ok {
			if settings.DropTruncated {
				continue
			}
			return fmt.Sprintf("no parent: %s", s)
		}
		switch {
		case s.Start <= parent.Start || s.End > parent.End || s.Lane != parent.Lane:
			return fmt.Sprintf("not inside its parent: %s in %s", s, parent)
		case s.Link == LinkNone && s.Trace != parent.Trace:
			return fmt.Sprintf("in another trace: %s and %s", s, parent)
		case s.Link != LinkNone && (s.LinkTrace != parent.Trace || s.Trace == parent.Trace):
			return fmt.Sprintf("linked to another trace: %s and %s", s, parent)
		}
	}
	for key, group := range siblings {
		if clockSet && key[1] == NoParent {
			continue
		}
		slices.SortFunc(group, func(a, b finished) int { return cmp.Compare(a.Start, b.Start) })
		for i := 1; i < len(group); i++ {
			if group[i].Start < group[i-1].End {
				return fmt.Sprintf("siblings overlap: %s and %s", group[i-1], group[i])
			}
		}
	}
	return ""
}

// wrongCounters returns the first contradiction between the counters of an ended stream and its spans; empty: none.
// entered is the number of opened calls.
func wrongCounters(c Counters, spans []finished, paired, entered uint64) string {
	if sum := paired + c.Late + c.Duplicates + c.InBreak; c.Events != sum {
		return fmt.Sprintf("%d events, but %d were paired, late, duplicate or in a break", c.Events, sum)
	}
	var truncated, ended uint64
	for _, n := range c.Truncated {
		truncated += n
	}
	for _, s := range spans {
		if s.Truncated == 0 {
			ended++
		}
	}
	if c.Finished != uint64(len(spans)) {
		return fmt.Sprintf("%d spans, counted %d", len(spans), c.Finished)
	}
	if closed := c.Finished + c.LeftOut; closed > entered || closed+truncated < entered {
		return fmt.Sprintf("%d calls entered, %d spans, %d left out, %d truncated", entered, c.Finished, c.LeftOut, truncated)
	}
	if n := c.Truncated[0] + c.Breaks[0]; n != 0 {
		return fmt.Sprintf("%d truncations or breaks without a cause", n)
	}
	return ""
}

// sizeOfValues is the memory of the values of attributes, each counted once.
func sizeOfValues(all [][]attribute) (bytes int) {
	values := map[*sharedValue]bool{}
	for _, attributes := range all {
		for _, a := range attributes {
			values[a.key], values[a.value] = true, true
		}
	}
	for v := range values {
		bytes += sharedBytes + len(v.value.Str())
	}
	return bytes
}
