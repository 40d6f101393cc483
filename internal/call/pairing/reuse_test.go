// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// trueCall is a call of a thread, with the times of its events.
type trueCall struct {
	parent     uint64
	start, end int64
}

// sharers play threads that get the ID of one lane, one after the other, while the earlier threads go on. They know
// the call of each event.
type sharers struct {
	random  *rand.Rand
	threads [][]uint64
	calls   map[uint64]*trueCall
	names   map[uint64]int
	events  []happened
	renames []callevent.Rename
	// begun is the first event of the latest thread.
	begun int
}

var sharedFunctions = []*callevent.Function{{Qualified: "a"}, {Qualified: "b"}, {Qualified: "c"}, {Qualified: "d"}, {Qualified: "e"}}

func (p *sharers) happen(kind callevent.Kind, function int) happened {
	n := uint64(len(p.events))
	h := happened{
		sequence: n, time: testEpoch + int64(n)*1_000_000, kind: kind, function: sharedFunctions[function],
		lane: callevent.Lane{ID: 1, Name: "one"},
	}
	p.events = append(p.events, h)
	return h
}

func (p *sharers) enter(thread, function int) {
	h := p.happen(callevent.KindEnter, function)
	call := &trueCall{parent: NoParent, start: h.time}
	if stack := p.threads[thread]; len(stack) > 0 {
		call.parent = stack[len(stack)-1]
	}
	p.calls[h.sequence], p.names[h.sequence] = call, function
	p.threads[thread] = append(p.threads[thread], h.sequence)
}

func (p *sharers) exit(thread int) {
	stack := p.threads[thread]
	top := stack[len(stack)-1]
	p.calls[top].end = p.happen(callevent.KindExit, p.names[top]).time
	p.threads[thread] = stack[:len(stack)-1]
}

// begin starts a thread. All except the first reuse the ID, and the rename has about the place.
func (p *sharers) begin(off int) {
	thread := len(p.threads)
	p.threads = append(p.threads, nil)
	if thread > 0 {
		n := uint64(max(p.begun+1, len(p.events)+off))
		r := callevent.Rename{
			Lane: 1, After: n, Time: testEpoch + int64(len(p.events)+2)*1_000_000, Rank: uint32(thread), Reused: true, Name: fmt.Sprint("reused ", thread),
		}
		switch p.random.IntN(3) {
		case 0:
			r.After = callevent.MaxSequence
		case 1:
			// The agent waited for a buffer between the event's time and the name's.
			r.Time += 5 * callevent.ReuseMarginTime
		}
		p.renames = append(p.renames, r)
	}
	p.begun = len(p.events)
	p.enter(thread, p.random.IntN(len(sharedFunctions)))
}

func (p *sharers) play(threads, steps, off int) {
	p.begin(off)
	for n := range threads * steps {
		if n%steps == 0 && n > 0 {
			p.begin(off)
		}
		thread := p.random.IntN(len(p.threads))
		// A thread without open calls has ended.
		switch depth := len(p.threads[thread]); {
		case depth == 0:
		case depth < 5 && p.random.IntN(2) == 0:
			p.enter(thread, p.random.IntN(len(sharedFunctions)))
		case depth > 1 || p.random.IntN(8) == 0:
			p.exit(thread)
		}
	}
	for thread := range p.threads {
		for len(p.threads[thread]) > 0 {
			p.exit(thread)
		}
	}
}

// The first writers sent a rename before they knew its number, and then again with the same order.
func TestAReuseBeginsAtTheNumberOfItsSecondRename(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	reused := callevent.Rename{Lane: 1, Name: "reused", Rank: 1, Reused: true, After: callevent.MaxSequence, Time: testEpoch + 10*callevent.ReuseMarginTime}
	numbered := reused
	numbered.After = 1
	r.take(delivery{received: testEpoch, events: []happened{parseEvent("0 +a")}, renames: []callevent.Rename{reused}})
	r.take(delivery{received: testEpoch, events: []happened{parseEvent("1 +b"), parseEvent("2 -b")}, renames: []callevent.Rename{numbered}})
	r.end(callevent.CauseShutdown)
	checkNoFault(t, r)
	for _, s := range r.spans {
		if s.Parent != NoParent {
			t.Errorf("expected no parent of a call that may be another thread's, got %d", s.Parent)
		}
	}
	if len(r.spans) != 2 {
		t.Errorf("expected 2 spans, got %d", len(r.spans))
	}
}

func TestCallsOfThreadsThatShareAnIDAreNeverNestedIntoEachOther(t *testing.T) {
	nested, flat := 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := &sharers{random: random, calls: map[uint64]*trueCall{}, names: map[uint64]int{}}
		p.play(1+random.IntN(4), 1+random.IntN(80), random.IntN(17)-8)
		if seed%2 == 0 {
			// The program ends inside calls.
			p.events = p.events[:1+random.IntN(len(p.events))]
			for n := range p.calls {
				if n >= uint64(len(p.events)) {
					delete(p.calls, n)
				}
			}
		}
		settings := wide()
		r := newRig(&settings, 1)
		// The renames arrive before all events, and again with each batch.
		events, renames := p.events, p.renames
		r.take(delivery{renames: renames, next: uint64(len(events)), received: events[len(events)-1].time})
		for len(events) > 0 {
			n := 1 + random.IntN(len(events))
			batch := append([]happened(nil), events[:n]...)
			random.Shuffle(n, func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			r.take(delivery{renames: renames, events: batch, next: uint64(len(p.events)), received: batch[0].time})
			events = events[n:]
		}
		r.end(callevent.CauseEnded)
		checkNoFault(t, r)
		seen := map[uint64]bool{}
		for _, s := range r.spans {
			call := p.calls[s.Sequence]
			if call == nil || seen[s.Sequence] {
				t.Fatalf("seed %d: a span of no call, or a second one: %v", seed, s)
			}
			seen[s.Sequence] = true
			if s.Parent != NoParent && s.Parent != call.parent {
				t.Fatalf("seed %d: call %d has parent %d instead of %d", seed, s.Sequence, s.Parent, call.parent)
			}
			if s.Truncated == 0 && s.End != call.end {
				t.Fatalf("seed %d: call %d ends at %d instead of %d", seed, s.Sequence, s.End-testEpoch, call.end-testEpoch)
			}
			if s.Parent == NoParent && s.Trace != s.Sequence {
				t.Fatalf("seed %d: call %d has no parent, and is in trace %d", seed, s.Sequence, s.Trace)
			}
			if s.Truncated == callevent.CauseEnded && seed%2 == 0 {
				continue
			}
			if s.Truncated != 0 && s.Truncated != callevent.CauseThreadReused {
				t.Fatalf("seed %d: call %d is truncated: %s", seed, s.Sequence, s.Truncated)
			}
			if len(p.renames) == 0 && (s.Truncated != 0 || s.Parent != call.parent) {
				t.Fatalf("seed %d: the only thread has call %d cut", seed, s.Sequence)
			}
			if s.Parent == NoParent {
				flat++
			} else {
				nested++
			}
		}
		if len(seen) != len(p.calls) {
			t.Fatalf("seed %d: %d spans of %d calls", seed, len(seen), len(p.calls))
		}
	}
	if nested == 0 || flat == 0 {
		t.Fatalf("%d nested and %d flat calls show nothing", nested, flat)
	}
}

func TestALaneIsNoLongerSharedWhenNoCallIsOpen(t *testing.T) {
	p := &sharers{random: rand.New(rand.NewPCG(1, 1)), calls: map[uint64]*trueCall{}, names: map[uint64]int{}}
	p.begin(0)
	p.begin(0)
	p.exit(0)
	p.exit(1)
	for range 2 * callevent.ReuseMargin {
		p.enter(1, 0)
		p.enter(1, 1)
		p.exit(1)
		p.exit(1)
	}
	settings := wide()
	r := newRig(&settings, 1)
	r.take(delivery{renames: p.renames, events: p.events, next: uint64(len(p.events)), received: p.events[len(p.events)-1].time})
	r.end(callevent.CauseEnded)
	checkNoFault(t, r)
	for _, s := range r.spans {
		if s.Sequence >= 4 && (s.Parent != p.calls[s.Sequence].parent || s.Truncated != 0 || s.LaneName != "reused 1") {
			t.Fatalf("call %d: %v", s.Sequence, s)
		}
	}
}
