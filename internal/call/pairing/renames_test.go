// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// renamed accepts a batch with renames and events. Each rename is a line: the time from which it holds, perhaps first, perhaps #
// and its order, and lane:name.
func renamed(renames, events string) act {
	return batchOf(func(d *delivery) {
		for line := range strings.Lines(renames) {
			if line = strings.TrimSpace(line); line != "" {
				d.renames = append(d.renames, parseRename(line))
			}
		}
	}, events)
}

func parseRename(line string) callevent.Rename {
	fields := strings.Fields(line)
	r := callevent.Rename{Time: testEpoch + int64(parseNumber(fields[0]))}
	for _, field := range fields[1 : len(fields)-1] {
		if field == "first" {
			r.First = true
		} else {
			r.Rank = uint32(parseNumber(strings.TrimPrefix(field, "#")))
		}
	}
	lane, name, _ := strings.Cut(fields[len(fields)-1], ":")
	r.Lane, r.Name = parseNumber(lane), name
	return r
}

// Events name lane 1 "one", and their times are ten times their numbers.
func TestALaneHasTheNameOfTheTimeOfEntry(t *testing.T) {
	for _, test := range []struct {
		name string
		do   []act
		// want is the name at each entry.
		want string
	}{
		{"an event without a rename names its lane", []act{renamed("", "0 +a\n1 +b")}, "0 one 1 one"},
		{"a name holds from its time on", []act{renamed("20 1:new", "0 +a\n1 +b\n2 +c\n3 +d")}, "0 one 1 one 2 new 3 new"},
		{"the time counts, not the number", []act{renamed("85 1:new", "0@90 +a\n1@80 +b\n2@85 +c")}, "0 new 1 one 2 new"},
		{"a rename of another lane changes nothing", []act{renamed("0 2:new", "0 +a\n1 2:+b")}, "0 one 1 new"},
		{"the first name also holds before its time", []act{renamed("50 first 1:born\n70 1:grown", "0 +a\n6 +b\n7 +c\n1 .\n2 .\n3 .\n4 .\n5 .")}, "0 born 6 born 7 grown"},
		{"the earlier of two first names is the first", []act{renamed("70 first 1:grown\n50 first 1:born", "0 +a\n1 .\n2 .\n3 .\n4 .\n5 .\n6 +b\n7 +c")}, "0 born 6 born 7 grown"},
		{"each name holds until the next", []act{renamed("10 1:a\n20 1:b\n30 1:c", "0 +a\n1 +b\n2 +c\n3 +d\n4 +e")}, "0 one 1 a 2 b 3 c 4 c"},
		{"renames arrive in any order, and twice", []act{renamed("30 1:c\n10 1:a\n20 1:b\n10 1:a", "0 +a\n1 +b\n2 +c\n3 +d\n4 +e")}, "0 one 1 a 2 b 3 c 4 c"},
		{"of two renames at one time the later in order holds", []act{renamed("10 #2 1:b\n10 #1 1:c", "0 +a\n1 +b"), renamed("10 #3 1:a", "2 +c")}, "0 one 1 a 2 a"},
		{"a rename arrives while the events wait", []act{batch("2 +c\n1 +b"), renamed("10 1:new", "0 +a")}, "0 one 1 new 2 new"},
		{"a rename arrives with the barrier that ends the wait", []act{batch("3 +c"), func(r *rig) {
			barriers := []callevent.Barrier{callevent.Interval(0, 3, callevent.CauseDropped)}
			r.take(delivery{received: testEpoch, barriers: barriers, renames: []callevent.Rename{parseRename("20 1:new")}})
		}}, "3 new"},
		{"a rename arrives while the calls are open", []act{batch("0 +a\n1 +b\n2 +c"), renamed("15 1:new", "")}, "0 one 1 one 2 new"},
		{"the first name arrives while the calls are open", []act{batch("0 +a\n1 +b"), renamed("50 first 1:new", "2 +c")}, "0 new 1 new 2 new"},
		{"an earlier rename arrives after a later one", []act{batch("0 +a"), renamed("10 1:b", "1 +b"), renamed("0 1:a", "2 +c")}, "0 a 1 b 2 b"},
		{"a rename arrives after the call has ended", []act{batch("0 +a\n1 +b\n2 -b"), renamed("0 1:new", "3 +c")}, "0 new 1 one 3 new"},
		{"a rename arrives after a break", []act{batch("0 +a", callevent.Point(1, callevent.CauseSuspended)), renamed("0 1:new", "1 +b")}, "0 one 1 new"},
		{"a rename before a break holds after it", []act{renamed("0 1:new", "0 +a"), batch("1 +b", callevent.Point(1, callevent.CauseSuspended))}, "0 new 1 new"},
		{"a rename arrives with events that are too late", []act{batch("5 +a"), func(r *rig) { r.giveUpOldest() }, renamed("60 1:new", "4 +b\n6 +c")}, "5 one 6 new"},
		{"the stream forgets the lane, not its names", []act{func(r *rig) { r.stream.settings.MaxLanes = 1 }, renamed("0 1:x\n0 2:y", "0 1:+a\n1 2:+a\n2 1:+b")}, "0 x 1 y 2 x"},
		{"a rename after the end changes nothing", []act{batch("0 +a", callevent.End(1, callevent.CauseEnded)), renamed("0 1:new", "1 +b")}, "0 one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			settings := wide()
			r := newRig(&settings, 1)
			for _, do := range test.do {
				do(r)
			}
			r.end(callevent.CauseShutdown)
			checkNoFault(t, r)
			lines(r.spans)
			var got []string
			for _, s := range r.spans {
				got = append(got, fmt.Sprint(s.Sequence, " ", s.LaneName))
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("expected %s, got %s", test.want, got)
			}
		})
	}
}

func TestARenameEvictedInItsOwnBatchChangesNoOpenFrame(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	at := func(number int) callevent.Rename {
		return callevent.Rename{Lane: 1, Time: testEpoch + 1000 + int64(number), Name: fmt.Sprint("name-", number)}
	}
	full := delivery{received: testEpoch, events: []happened{parseEvent("0 +a")}}
	for i := range maxRenames - 1 {
		full.renames = append(full.renames, at(i))
	}
	r.take(full)
	// The first is the last that fits. For the second the stream forgets the earliest names, and the first is among them.
	first, second := at(100), at(50)
	first.Rank, second.Rank = 1, 2
	r.take(delivery{received: testEpoch, renames: []callevent.Rename{first, second}})
	r.end(callevent.CauseShutdown)
	checkNoFault(t, r)
	if len(r.spans) != 1 || r.spans[0].LaneName != "one" {
		t.Errorf("expected one span of lane one, got %v", r.spans)
	}
}

// requests are calls of lane 1, step nanoseconds after one another, with a rename before each. All renames stand in front.
func requests(from, to uint64, step int64) (d delivery) {
	for i := from; i < to; i++ {
		begins := testEpoch + int64(i+1)*step
		for n, line := range []string{fmt.Sprint(2*i+1, " +f"), fmt.Sprint(2*i+2, " -f")} {
			e := parseEvent(line)
			e.time = begins + int64(n)
			d.events = append(d.events, e)
		}
		d.renames = append(d.renames, callevent.Rename{Lane: 1, Time: begins, First: i == 0, Name: fmt.Sprint("request-", i), Rank: uint32(i)})
		d.received = begins
	}
	return d
}

// checkRequests checks the names of the spans, and returns the number of those without a name.
func checkRequests(t *testing.T, r *rig, want int) (unnamed int) {
	t.Helper()
	checkNoFault(t, r)
	for i, s := range r.spans {
		switch s.LaneName {
		case fmt.Sprint("request-", i):
		case "":
			unnamed++
		default:
			t.Fatalf("request %d has the name %q", i, s.LaneName)
		}
	}
	if len(r.spans) != want {
		t.Fatalf("%d spans, expected %d", len(r.spans), want)
	}
	return unnamed
}

func TestTheStreamEvictsPastRenamesOnlyWhenNoEventWaits(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	const waiting, all, step = 3000, 3 * maxRenames, 4 * pastMargin / maxRenames
	d := requests(0, waiting, step)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(waiting, func(i, j int) { d.renames[i], d.renames[j] = d.renames[j], d.renames[i] })
	r.take(d)
	h := r.stream.stacks.renames.histories[1]
	if n := len(h.renames); n != waiting {
		t.Fatalf("the history has %d renames while events wait, expected %d", n, waiting)
	}
	batch("0@1 .")(r)
	for i := uint64(waiting); i < all; i += 50 {
		r.take(requests(i, min(i+50, all), step))
	}
	// This rename is too old for all later events.
	renamed("1 1:old", "")(r)
	if n := checkRequests(t, r, all) + int(r.counters.DroppedRenames); n != 0 {
		t.Errorf("%d calls without names and dropped renames", n)
	}
	if n := len(h.renames); !h.forgotten || n > 2*waiting {
		t.Errorf("the history has %d renames", n)
	}
}

func TestCallsOfDroppedRenamesHaveNoNameAndAreCounted(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	const chunk, all = 2000, 6000
	for from := uint64(0); from < all; from += chunk {
		r.take(requests(from, from+chunk, 10))
	}
	batch("0@1 .")(r)
	// The history has forgotten the renames of that time.
	renamed("10 #9000 1:old", "")(r)
	unnamed := checkRequests(t, r, all)
	if unnamed == 0 || unnamed > all-maxRenames/2 {
		t.Errorf("%d of %d spans have no name", unnamed, len(r.spans))
	}
	if r.counters.DroppedRenames != uint64(unnamed)+1 {
		t.Errorf("%d spans have no name, %d renames were dropped", unnamed, r.counters.DroppedRenames)
	}
}

func TestRenamesThatArriveBackwardsAreBoundedAndCounted(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	count := uint64(0)
	for range 4 {
		d := delivery{received: testEpoch}
		for range callevent.MaxRenames {
			d.renames = append(d.renames, callevent.Rename{Lane: 1, Time: testEpoch + 1_000_000 - int64(count), Rank: uint32(count), Name: fmt.Sprint("n", count%10)})
			count++
		}
		r.take(d)
	}
	checkNoFault(t, r)
	if n := uint64(len(r.stream.stacks.renames.histories[1].renames)); n > maxRenames || r.counters.DroppedRenames+n != count {
		t.Errorf("the history has %d renames, %d of %d were dropped", n, r.counters.DroppedRenames, count)
	}
}

// A program that renames a thread with every request uses no more memory with time. Its other calls stay open.
func TestFormerNamesOfLanesAreForgotten(t *testing.T) {
	settings := wide()
	settings.MaxNameBytes = 512 << 10
	r := newRig(&settings, 1)
	batch("0 2:+main")(r)
	const all = 20_000
	most := 0
	for from := uint64(0); from < all; from += 100 {
		r.take(requests(from, from+100, pastMargin/200))
		most = max(most, r.stream.names.bytes)
	}
	// At this time all earlier names are past.
	r.take(requests(all, all+1, pastMargin/100))
	if unnamed := checkRequests(t, r, all+1); unnamed != 0 || r.stream.OpenFrames() != 1 || r.counters.DroppedRenames != 0 {
		t.Errorf("%d calls without names, %d frames are open; %s", unnamed, r.stream.OpenFrames(), countersText(r.counters))
	}
	if limit := settings.MaxNameBytes/sweepShare + 128<<10; most > limit {
		t.Errorf("names took %d bytes, expected at most %d", most, limit)
	}
	if r.stream.Spare(); len(r.stream.names.laneNames) > 3 {
		t.Errorf("the stream has %d names: %+v", len(r.stream.names.laneNames), r.stream.names.laneNames)
	}
}

func TestNamesThatAreInUseAreNotForgotten(t *testing.T) {
	settings := wide()
	settings.MaxClockJump = 10 * testJump
	r := newRig(&settings, 1)
	spare := func(r *rig) {
		r.stream.Spare()
		r.collect()
	}
	for _, do := range []act{
		renamed("0 first 1:a\n20 1:b\n30 1:c", "0 +f\n1 +g\n2 +h\n3 +i\n4@2000000000 2:+f\n5@2000000000 2:-f\n6 ."),
		renamed("2000000090 2:later\n2000000200 1:d", "8@2000000080 1:+j\n9@2000000090 2:+g\n10@2000000100 3:+f\n11 ."),
		spare,
		batch("3000@2000000110 4:+f"),
		spare, spare,
		batch("7 ."),
		spare,
		batch("12@2000000120 1:+k\n13@2000000130 2:+h"),
	} {
		do(r)
	}
	checkNoFault(t, r)
	if !r.stream.stacks.renames.histories[1].forgotten {
		t.Error("expected lane 1 to forget its past names")
	}
	r.end(callevent.CauseShutdown)
	lines(r.spans)
	var got []string
	for _, s := range r.spans {
		got = append(got, fmt.Sprint(s.Sequence, " ", s.LaneName))
	}
	const want = "0 a, 1 a, 2 b, 3 c, 4 lane 2, 8 c, 9 later, 10 lane 3, 12 c, 13 later, 3000 lane 4"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("expected %s, got %s", want, got)
	}
}

func TestASkippedNumberHoldsNoName(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batch("0 +f\n1 -f\n9 .")(r)
	r.stream.Spare()
	r.collect()
	checkNoFault(t, r)
	if n := r.stream.names.laneNames; len(n) > 0 {
		t.Errorf("the stream has %+v", n)
	}
}

// The stream sweeps names when their memory has grown, not with each batch while they are many.
func TestNamesInUseAreNotSweptAgainAndAgain(t *testing.T) {
	settings := wide()
	settings.MaxNameBytes = 100 << 10
	r := newRig(&settings, 1)
	const lanes = 200
	for i := range uint64(lanes) {
		r.take(delivery{received: testEpoch, events: []happened{parseEvent(fmt.Sprintf("%d %d:+f", i, 10+i))}})
	}
	batch("200 1:+f\n201 1:-f")(r)
	batch("202 .")(r)
	checkNoFault(t, r)
	if n := len(r.stream.names.laneNames); n != lanes+1 {
		t.Errorf("the stream has %d names, expected those of %d lanes and the name of the idle lane", n, lanes)
	}
}

// Any number of renames, for times far ahead, uses a bounded memory and truncates no call.
func TestRenamesAreBounded(t *testing.T) {
	for _, lanes := range []uint64{3, 300} {
		settings := wide()
		settings.MaxNameBytes = 4 << 20
		r := newRig(&settings, 1)
		batch("0 +main")(r)
		most := 0
		for i := range uint64(20) {
			d := delivery{received: testEpoch}
			for j := range uint64(callevent.MaxRenames) {
				n := callevent.MaxRenames*i + j + 10
				d.renames = append(d.renames, callevent.Rename{Lane: n % lanes, Time: testEpoch + int64(n), Name: fmt.Sprint(n)})
			}
			r.take(d)
			most = max(most, r.stream.Bytes())
			for id, h := range r.stream.stacks.renames.histories {
				if len(h.renames) > maxRenames {
					t.Fatalf("lane %d has %d renames", id, len(h.renames))
				}
			}
		}
		checkNoFault(t, r)
		if limit := settings.MaxNameBytes + 2<<20; most > limit {
			t.Errorf("%d lanes: the stream took %d bytes, expected at most %d", lanes, most, limit)
		}
		remembered := uint64(0)
		for _, h := range r.stream.stacks.renames.histories {
			remembered += uint64(len(h.renames))
		}
		if n := r.counters.DroppedRenames; n == 0 || n+remembered != 20*callevent.MaxRenames {
			t.Errorf("%d lanes: %d renames were dropped and %d are remembered", lanes, n, remembered)
		}
		if r.counters.Breaks[callevent.CauseLimit] != 0 || r.stream.OpenFrames() != 1 {
			t.Errorf("%d lanes: %d frames are open; %s", lanes, r.stream.OpenFrames(), countersText(r.counters))
		}
	}
}

// The strings of a batch share one memory, which the stream must not keep.
func TestTheNameOfARenameIsACopyOfThatInTheBatch(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	renamed("0 1:somebody", "0 +a")(r)
	checkNoFault(t, r)
	name := r.stream.names.laneNames[r.stream.stacks.lanes[0].name].name
	if name != "somebody" {
		t.Fatalf("the lane has the name %q", name)
	}
	if unsafe.StringData(name) == unsafe.StringData(r.batch.Renames[0].Name) {
		t.Error("the name is in the memory of the batch")
	}
}
