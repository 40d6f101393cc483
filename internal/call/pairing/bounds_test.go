// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Rule 5: bounds.
func TestBounds(t *testing.T) {
	runStories(t, []story{
		{
			name:     "a lane at max_frames begins with an empty stack",
			settings: func(s *Settings) { s.MaxFrames = 2 },
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 -c
				4 -b
				5 2:+a
				6 2:-a`)},
			want: `
				a#0 0..20 truncated limit
				b#1 in #0 10..20 truncated limit
				c#2 20..30
				a#5 50..60 lane 2`,
			counts: `orphans 1
				truncated limit 2`,
		},
		{
			name:     "at max_lanes the stream forgets the lanes without open frames",
			settings: func(s *Settings) { s.MaxLanes = 2 },
			do: []act{batch(`
				0 1:+a
				1 2:+a
				2 2:-a
				3 3:+a
				4 1:-a
				5 2:+b
				6 2:-b
				7 3:-a`)},
			want: `
				a#0 0..40
				a#1 10..20 lane 2
				a#3 30..70 lane 3
				b#5 50..60 lane 2`,
		},
		{
			name:     "if most lanes are busy at max_lanes, all frames are truncated",
			settings: func(s *Settings) { s.MaxLanes = 2 },
			do: []act{batch(`
				0 1:+a
				1 2:+a
				2 3:+a
				3 3:-a
				4 1:-a`)},
			want: `
				a#0 0..20 truncated limit
				a#1 10..20 lane 2 truncated limit
				a#2 20..30 lane 3`,
			counts: `orphans 1
				truncated limit 2`,
		},
		{
			name:     "a stream at max_lanes 1 follows its events from lane to lane",
			settings: func(s *Settings) { s.MaxLanes = 1 },
			do:       []act{batch("0 1:+a\n1 1:-a\n2 2:+a\n3 1:+b\n4 1:-b\n5 2:-a")},
			want: `
				a#0 0..10
				a#2 20..30 lane 2 truncated limit
				b#3 30..40`,
			counts: `orphans 1
				truncated limit 1`,
		},
		{
			name:     "a forgotten lane releases its continuation trace",
			settings: func(s *Settings) { s.MaxLanes, s.MaxSpansPerTrace = 1, 1 },
			do:       []act{batch("0 1:+a\n1 1:+b\n2 1:-b\n3 1:-a\n4 2:+a\n5 2:-a\n6 1:+a\n7 1:+b\n8 1:-b\n9 1:-a")},
			want: `
				a#0 0..30 trace 0
				b#1 in #0 10..20 trace 1 continues 0
				a#4 40..50 lane 2 trace 4
				a#6 60..90 trace 6
				b#7 in #6 70..80 trace 7 continues 6`,
		},
		{
			name:     "a stream with too many names gives up its gaps, truncates, and learns the names again",
			settings: func(s *Settings) { s.MaxNameBytes = 1300 },
			do:       []act{batch("0 +a\n1 +b\n3 +c"), batch(`4 +d`), batch(`5 -d`), announce(6), batch("6 +e\n7 -e")},
			want: `
				a#0 0..11 truncated gap
				b#1 in #0 10..11 truncated gap
				c#3 30..41 truncated limit
				d#4 in #3 40..41 truncated limit
				e#6 60..70`,
			counts: `orphans 1
				missing 1
				truncated limit 2
				truncated gap 2
				breaks limit 1
				breaks gap 1`,
		},
	})
}

// A stream with any number of lanes and names uses a bounded memory.
func TestManyLanesAndNamesStayBounded(t *testing.T) {
	settings := wide()
	settings.MaxLanes, settings.MaxNameBytes, settings.MaxFrames = 10, 64<<10, 3
	r := newRig(&settings, 1)
	most := 0
	for i := uint64(0); i < 3000; i += 3 {
		r.take(delivery{received: testEpoch, events: []happened{
			{sequence: i, time: testEpoch, kind: callevent.KindEnter, lane: callevent.Lane{ID: i}, function: functionNamed(fmt.Sprint("f", i))},
			{sequence: i + 1, time: testEpoch, kind: callevent.KindThrow, lane: callevent.Lane{ID: i}, function: functionNamed(fmt.Sprint("f", i)), exception: fmt.Sprint("E", i)},
			{sequence: i + 2, time: testEpoch, kind: callevent.KindEnter, lane: callevent.Lane{ID: i % 7}, function: functionNamed("g")},
		}})
		most = max(most, r.stream.Bytes())
	}
	r.end(callevent.CauseShutdown)
	checkNoFault(t, r)
	if wrong := wrongSpans(&settings, r.spans, false); wrong != "" {
		t.Error(wrong)
	}
	if entered := 2000; len(r.spans) != entered {
		t.Errorf("%d spans, expected %d", len(r.spans), entered)
	}
	if most > 128<<10 {
		t.Errorf("the stream took %d bytes", most)
	}
}

// The number of barriers ahead is bounded. At the bound the stream gives up the numbers before the first of them.
func TestBarriersAheadAreBounded(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batch("0 +a\n2 -a")(r)
	for from := uint64(0); from < 3*maxPending; from += callevent.MaxBarriers {
		var barriers []callevent.Barrier
		for i := range uint64(callevent.MaxBarriers) {
			barriers = append(barriers, suspendedAt(10+from+i))
		}
		announce(0, barriers...)(r)
	}
	checkNoFault(t, r)
	if n := r.counters.Breaks[callevent.CauseSuspended]; n != 2*maxPending {
		t.Errorf("%d barriers were reached, expected %d", n, 2*maxPending)
	}
}

// A barrier before paired events needs no room.
func TestABarrierBeforePairedEventsNeedsNoRoom(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batch("0 +a\n1 +b")(r)
	var barriers []callevent.Barrier
	for i := range uint64(maxPending) {
		barriers = append(barriers, suspendedAt(10+i))
	}
	for ; len(barriers) > 0; barriers = barriers[callevent.MaxBarriers:] {
		announce(0, barriers[:callevent.MaxBarriers]...)(r)
	}
	announce(0, suspendedAt(1), suspendedAt(2))(r)
	checkNoFault(t, r)
	if n := r.counters.Breaks[callevent.CauseSuspended]; n != 2 || r.counters.Missing != 0 {
		t.Errorf("counters %s", countersText(r.counters))
	}
}

// A stream returns the memory of deep stacks and of long waits.
func TestMemoryGoesDownWhenItIsNoLongerNeeded(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	empty := r.stream.Bytes()
	held := func(what string, atLeast int) {
		t.Helper()
		if got := r.stream.Bytes() - empty; got < atLeast {
			t.Errorf("%s: %d bytes, expected at least %d", what, got, atLeast)
		}
	}
	released := func(what string, atMost int) {
		t.Helper()
		if got := r.stream.Bytes() - empty; got > atMost {
			t.Errorf("%s: %d bytes, expected at most %d", what, got, atMost)
		}
	}
	const n = 10_000
	series := func(from, to uint64, kind callevent.Kind, texts ...string) act {
		return func(r *rig) {
			d := delivery{received: testEpoch}
			for i := from; i < to; i++ {
				var attributes []Attribute
				for _, text := range texts {
					attributes = append(attributes, Attribute{"key", callevent.StringValue(fmt.Sprint(i, text))})
				}
				d.events = append(d.events, happened{
					sequence: i, time: testEpoch, kind: kind, lane: callevent.Lane{ID: 1}, function: functionNamed("f"), attributes: attributes,
				})
			}
			r.take(d)
		}
	}
	series(1, n, callevent.KindEnter)(r)
	held("waiting", n*eventSize)
	series(0, 1, callevent.KindEnter)(r)
	r.expire()
	held("open frames", n*frameBytes)
	series(n, 2*n, callevent.KindExit)(r)
	released("after deep calls", keptStack+2*laneBytes+1024)

	long := strings.Repeat("x", 10_000)
	series(2*n+1, 2*n+101, callevent.KindEnter, long)(r)
	held("waiting attributes", 100*10_000)
	series(2*n, 2*n+1, callevent.KindEnter)(r)
	held("attributes of open frames", 100*10_000)
	r.expire()
	series(2*n+101, 2*n+202, callevent.KindExitTop)(r)
	released("after attributes", keptStack+2*laneBytes+1024)

	series(4*n, 5*n, callevent.KindEnter)(r)
	held("waiting behind a gap", n*eventSize)
	r.end(callevent.CauseShutdown)
	released("after the end", 1024)
	checkNoFault(t, r)

	for what, release := range map[string]act{
		"expiry":                   after(testWait),
		"giving up the oldest gap": giveUpOldest,
		"forgetting":               func(r *rig) { r.stream.Forget(&r.out); r.collect() },
	} {
		r = newRig(&settings, 1)
		series(1, n, callevent.KindSkip)(r)
		held("waiting before "+what, n*eventSize)
		release(r)
		released("after "+what, 2048)
		checkNoFault(t, r)
	}
}

// A long value of many attributes uses memory once, and the number of a frame's attributes is bounded.
func TestAttributesAreBounded(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	var many []Attribute
	for range 20_000 {
		many = append(many, Attribute{"key", callevent.StringValue(strings.Repeat("x", callevent.MaxNameBytes))})
	}
	events := func(attributes []Attribute, kinds ...callevent.Kind) (d delivery) {
		d.received = testEpoch
		for i, kind := range kinds {
			h := parseEvent("0 +f")
			h.sequence, h.kind, h.attributes = uint64(i), kind, attributes
			d.events = append(d.events, h)
		}
		return d
	}
	packed, err := pack(events(many, callevent.KindEnter), 1)
	if err != nil || len(packed) != 1 {
		t.Fatal(len(packed), err)
	}
	before := testing.AllocsPerRun(1, func() { r.takeData(packed[0]) })
	if before > 100 {
		t.Errorf("%v allocations", before)
	}
	if n := r.counters.DroppedAttributes; n != uint64(len(many)-maxAttributes) {
		t.Errorf("%d attributes dropped", n)
	}
	checkNoFault(t, r)

	r = newRig(&settings, 1)
	r.take(events(many[:100], callevent.KindEnter, callevent.KindThrow, callevent.KindThrow, callevent.KindExit))
	checkNoFault(t, r)
	if len(r.spans) != 1 || len(r.spans[0].Attributes) != maxAttributes || r.counters.DroppedAttributes != 400-maxAttributes {
		t.Errorf("%d spans, %d attributes dropped", len(r.spans), r.counters.DroppedAttributes)
	}
}

// A map never shrinks, so the stream replaces the map after a million waiting attributes.
func TestTheStreamReplacesAMapThatHadManyWaitingAttributes(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	empty := r.stream.Bytes()
	const n = 10_000
	d := delivery{received: testEpoch}
	for i := range uint64(n) {
		d.events = append(d.events, happened{
			sequence: 1 + i, time: testEpoch, kind: callevent.KindEnter + callevent.Kind(i%2), lane: callevent.Lane{ID: 1},
			function: functionNamed("f"), attributes: []Attribute{{"key", callevent.BoolValue(true)}},
		})
	}
	r.take(d)
	if got := r.stream.Bytes() - empty; got < n*(eventSize+waitingBytes) {
		t.Errorf("%d bytes while events wait, expected at least %d", got, n*(eventSize+waitingBytes))
	}
	batch("0 .")(r)
	r.expire()
	checkNoFault(t, r)
	if r.stream.order.attributes.most != 0 || r.stream.Bytes()-empty > keptStack {
		t.Errorf("places for %d events are kept in %d bytes", r.stream.order.attributes.most, r.stream.Bytes()-empty)
	}
}

// A value counts once for all attributes of waiting events and of open frames that have it, until the last of them is
// gone.
func TestASharedValueCountsOnce(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	empty := r.stream.Bytes()
	const n, long = 1_000, callevent.MaxNameBytes
	shared := Attribute{"key", callevent.StringValue(strings.Repeat("x", long))}
	at := func(first uint64, kind callevent.Kind) (d delivery) {
		d.received = testEpoch
		for i := range uint64(n) {
			d.events = append(d.events, happened{
				sequence: first + i, time: testEpoch, kind: kind, lane: callevent.Lane{ID: 1},
				function: functionNamed("f"), attributes: []Attribute{shared},
			})
		}
		return d
	}
	holds := func(when string, values int) {
		t.Helper()
		checkNoFault(t, r)
		if got := r.stream.Bytes() - empty; got < values*long || got > values*long+n*2_000 {
			t.Errorf("%s: %d bytes, expected %d values of %d", when, got, values, long)
		}
	}
	r.take(at(1, callevent.KindEnter))
	holds("events wait", 1)
	batch("0 .")(r)
	holds("frames are open", 1)
	exits := at(1+n, callevent.KindExit)
	exits.events = exits.events[:n-1]
	r.take(exits)
	holds("one frame is open", 1)
	r.end(callevent.CauseEnded)
	empty = 0 // an ended stream has no maps
	holds("none is open", 0)
}
