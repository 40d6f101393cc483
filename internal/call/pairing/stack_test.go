// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Rules 2 and 3.
func TestStacks(t *testing.T) {
	runStories(t, []story{
		{
			name: "each lane has a stack of its own",
			do: []act{batch(`
				0 1:+f
				1 2:+f
				2 1:-f
				3 2:-f`)},
			want: `
				f#0 0..20
				f#1 10..30 lane 2`,
		},
		{
			name: "an exit of a recursive function closes its topmost frame",
			do: []act{batch(`
				0 +f
				1 +f
				2 -f
				3 -f`)},
			want: `
				f#0 0..30
				f#1 in #0 10..20`,
		},
		{
			name: "a call of a function deeper in the stack ends the frames above its nearest one",
			do: []act{batch(`
				0 +f
				1 +g
				2 +f
				3 +h
				4 +k
				5 +m f
				6 -m
				7 -f
				8 +n g
				9 +n x
				10 -g`)},
			want: `
				g#1 in #0 10..100
				f#2 in #1 20..70
				h#3 in #2 30..50 truncated longjmp
				k#4 in #3 40..50 truncated longjmp
				m#5 in #2 50..60
				n#8 in #1 80..100 truncated mismatch
				n#9 in #8 90..100 truncated mismatch`,
			counts: `
				truncated mismatch 2
				truncated longjmp 2`,
			open: 1,
		},
		{
			name: "an exit of the top closes the top frame of any function",
			do: []act{batch(`
				0 +f
				1 +g
				2 -
				3 -
				4 -`)},
			want: `
				f#0 0..30
				g#1 in #0 10..20`,
			counts: `orphans 1`,
		},
		{
			name: "calls that are open when an outermost function is entered are truncated",
			do: []act{batch(`
				0 *f
				1 +g
				2 *f
				3 -g
				4 -f`)},
			want: `
				f#0 0..20 truncated mismatch
				g#1 in #0 10..20 truncated mismatch
				f#2 20..40`,
			counts: `
				orphans 1
				truncated mismatch 2`,
		},
		{
			name: "a function that fails has an error and no exception",
			do: []act{batch(`
				0 +f
				1 +g
				2 ~g ENOENT
				3 ~h ENOENT
				4 -f`)},
			want: `
				f#0 0..40
				g#1 in #0 10..20 unwound "ENOENT"`,
			counts: `orphans 1`,
		},
		{
			name: "an exception is on the frame it was thrown in, and unwinding adds none of the same type",
			do: []act{batch(`
				0 +f
				1 +g
				2 !g Boom
				3 ^g Boom
				4 ^f Boom`)},
			want: `
				f#0 0..40 unwound "Boom" throws "Boom" at 40
				g#1 in #0 10..30 unwound "Boom" throws "Boom" at 20`,
		},
		{
			name: "unwinding by another type than the thrown one adds that type",
			do: []act{batch(`
				0 +f
				1 !f Inner
				2 ^f Outer`)},
			want: `f#0 0..20 unwound "Outer" throws "Inner" at 10 throws "Outer" at 20`,
		},
		{
			name: "a thrown exception that is caught leaves the call as it is",
			do: []act{batch(`
				0 +f
				1 !f Boom
				2 !f Boom
				3 -f`)},
			want: `f#0 0..30 throws "Boom" at 10 throws "Boom" at 20`,
		},
		{
			name: "unwinding without a known exception is unwinding",
			do: []act{batch(`
				0 +f
				1 ^f`)},
			want: `f#0 0..10 unwound "" throws "" at 10`,
		},
		{
			name: "an exit of a function deeper in the stack closes its nearest frame, and truncates the frames above",
			do: []act{batch(`
				0 +f
				1 +f
				2 +g
				3 +h
				4 -f
				5 -f`)},
			want: `
				f#0 0..50
				f#1 in #0 10..40
				g#2 in #1 20..40 truncated mismatch
				h#3 in #2 30..40 truncated mismatch`,
			counts: `truncated mismatch 2`,
		},
		{
			name: "unwinding finds a frame deeper in the stack",
			do: []act{batch(`
				0 +f
				1 +g
				2 ^f Boom`)},
			want: `
				f#0 0..20 unwound "Boom" throws "Boom" at 20
				g#1 in #0 10..20 truncated mismatch`,
			counts: `truncated mismatch 1`,
		},
		{
			name: "a throw in a function deeper in the stack truncates the frames above",
			do: []act{batch(`
				0 +f
				1 +g
				2 !f Boom
				3 +h
				4 -h
				5 -f`)},
			want: `
				f#0 0..50 throws "Boom" at 20
				g#1 in #0 10..20 truncated mismatch
				h#3 in #0 30..40`,
			counts: `truncated mismatch 1`,
		},
		{
			name: "an exit, a throw and an unwind of a function that is not on the stack are orphans",
			do: []act{batch(`
				0 +f
				1 2:+g
				2 -g
				3 !g Boom
				4 ^g Boom
				5 -never
				6 -f
				7 3:-f
				8 2:-g`)},
			want: `
				f#0 0..60
				g#1 10..80 lane 2`,
			counts: `orphans 5`,
		},
		{
			name: "a throw beyond max_throws is counted, and so is an unwind by it",
			settings: func(s *Settings) {
				s.MaxThrows = 1
			},
			do: []act{batch(`
				0 +f
				1 !f A
				2 !f B
				3 ^f C`)},
			want:   `f#0 0..30 unwound "C" throws "A" at 10 and 2 more`,
			counts: `dropped throws 2`,
		},
		{
			name:     "a throw beyond max_throws is counted once, also if the frame is unwound by it",
			settings: func(s *Settings) { s.MaxThrows = 1 },
			do: []act{batch(`
				0 +f
				1 +g
				2 !g A
				3 !g B
				4 ^g B
				5 !f B
				6 ^f B`)},
			want: `
				f#0 0..60 unwound "B" throws "B" at 50
				g#1 in #0 10..40 unwound "B" throws "A" at 20 and 1 more`,
			counts: `dropped throws 1`,
		},
		{
			name: "the attributes of orphans are counted",
			do: []act{batchOf(func(d *delivery) {
				for i := range d.events {
					d.events[i].attributes = []Attribute{{"key", callevent.IntValue(1)}, {"other", callevent.IntValue(2)}}
				}
			}, "0 -f\n1 !f A\n2 ^f A\n3 -")},
			counts: `orphans 4
				dropped attributes 8`,
		},
	})
}

// A lane has the name that it had when the call was entered.
func TestALaneOfACallHasItsNameAtEntry(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	renamed := func(names ...string) act {
		return batchOf(func(d *delivery) {
			for i, name := range names {
				d.events[i].lane.Name = name
			}
		}, "0 +f\n1 +g\n2 -g\n3 -f")
	}
	renamed("worker", "draining", "draining", "done")(r)
	checkNoFault(t, r)
	if len(r.spans) != 2 || r.spans[0].LaneName != "draining" || r.spans[1].LaneName != "worker" {
		t.Errorf("spans %v", r.spans)
	}
	if n := len(r.stream.stacks.lanes); n != 1 {
		t.Errorf("%d lanes, expected 1", n)
	}
}

// A frame has the attributes of all its events, also of those that waited, and
// keeps no memory of the batch.
func TestAFrameHasTheAttributesOfItsEvents(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	attributed := func(events string) act {
		return batchOf(func(d *delivery) {
			for i := range d.events {
				d.events[i].attributes = []Attribute{
					{"s", callevent.StringValue("of " + string('0'+byte(d.events[i].sequence)))},
					{"i", callevent.IntValue(int64(d.events[i].sequence))},
					{"b", callevent.BoolValue(true)},
				}
			}
		}, events)
	}
	attributed("0 +f\n1 +g\n3 !f A")(r)
	attributed("4 -f\n5 -f")(r)
	attributed("2 -g")(r)
	checkNoFault(t, r)
	want := indented(`
		g#1 in #0 10..20 s="of 1" i=1 b=true s="of 2" i=2 b=true
		f#0 0..40 throws "A" at 30 s="of 0" i=0 b=true s="of 3" i=3 b=true s="of 4" i=4 b=true`)
	got := ""
	for _, s := range r.spans {
		got += finishedShort{s, false}.String() + "\n"
	}
	if got != want {
		t.Errorf("spans:\n%sexpected:\n%s", got, want)
	}
}

// On a deep stack an orphan is found without a search through all frames. Otherwise nothing differs.
func TestOrphansOnADeepStack(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	number := uint64(0)
	events := func(n int, text string) {
		var b strings.Builder
		for range n {
			for what := range strings.FieldsSeq(text) {
				fmt.Fprintln(&b, number, what)
				number++
			}
		}
		batch(b.String())(r)
	}
	events(1, "2:+other")
	events(2*countedStack, "+f")
	l := &r.stream.stacks.lanes[1]
	if events(1, "+g -g -f"); l.counts != nil {
		t.Error("frames are counted before the first orphan")
	}
	if events(10, "-other"); l.counts == nil {
		t.Error("frames are not counted after an orphan")
	}
	// Frames that are entered later are found, also below others.
	events(100, "+other +f -other -other")
	events(2*countedStack, "-f")
	checkNoFault(t, r)
	if l.counts != nil || len(l.frames) > 0 {
		t.Errorf("%d frames are open, functions counted: %v", len(l.frames), l.counts)
	}
	// Of f, one was closed with g, and 100 were above others.
	want := Counters{Orphans: 10 + 100 + 1}
	want.Truncated[callevent.CauseMismatch] = 100
	if r.counters.Orphans != want.Orphans || r.counters.Truncated != want.Truncated {
		t.Errorf("counters\n%sexpected\n%s", countersText(r.counters), countersText(want))
	}
	events(2*countedStack, "+f")
	events(1, "-other")
	batch(fmt.Sprintf("%d .", number), suspendedAt(number))(r)
	checkNoFault(t, r)
}
