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

// told takes a batch that has renames beside its events. Each is in a line: the
// number, @ and the time from which it holds, of which one may be missing; first, if
// it is; # and its order, or ~ and its order if it is provisional; and lane:name.
func told(renames, events string) act {
	return batchOf(func(d *delivery) {
		for line := range strings.Lines(renames) {
			if line = strings.TrimSpace(line); line != "" {
				d.renames = append(d.renames, parseRename(line))
			}
		}
	}, events)
}

const farAway = 1_000_000

func parseRename(line string) callevent.Rename {
	fields := strings.Fields(line)
	r := callevent.Rename{Sequence: callevent.MaxSequence, Time: testEpoch + farAway}
	number, at, timed := strings.Cut(fields[0], "@")
	if number != "" {
		r.Sequence = parseNumber(number)
	}
	if timed {
		r.Time = testEpoch + int64(parseNumber(at))
	}
	for _, field := range fields[1 : len(fields)-1] {
		switch field[0] {
		case 'f':
			r.First = true
		case '~':
			r.Provisional = true
			fallthrough
		case '#':
			r.Order = uint32(parseNumber(field[1:]))
		}
	}
	lane, name, _ := strings.Cut(fields[len(fields)-1], ":")
	r.Lane, r.Name = parseNumber(lane), name
	return r
}

// Events say that lane 1 is "one", and happen at ten times their number.
func TestTheNameOfALane(t *testing.T) {
	for _, test := range []struct {
		name string
		do   []act
		// want is the name at each entry.
		want string
	}{
		{"as events say where nothing else is known", []act{told("", "0 +a\n1 +b")}, "0 one 1 one"},
		{"from a number on", []act{told("2 1:new", "0 +a\n1 +b\n2 +c\n3 +d")}, "0 one 1 one 2 new 3 new"},
		{"from a time on", []act{told("@20 1:new", "0 +a\n1 +b\n2 +c\n3 +d")}, "0 one 1 one 2 new 3 new"},
		{"from a number on, whatever the clock shows", []act{told("2@1000 1:new", "1@99 +a\n0@90 +a\n2@80 +c")}, "0 one 1 one 2 new"},
		{"from a time on, though the number is later", []act{told("9@15 1:new", "0 +a\n1 +b\n2 +c")}, "0 one 1 one 2 new"},
		{"of another lane", []act{told("0 2:new", "0 +a\n1 2:+b")}, "0 one 1 new"},
		{"the first holds before it too", []act{told("5@50 first 1:born\n7 1:grown", "0 +a\n6 +b\n7 +c\n1 .\n2 .\n3 .\n4 .\n5 .")}, "0 born 6 born 7 grown"},
		{"of two firsts the earlier is the first", []act{told("7@70 first 1:grown\n5@50 first 1:born", "0 +a\n1 .\n2 .\n3 .\n4 .\n5 .\n6 +b\n7 +c")}, "0 born 6 born 7 grown"},
		{"the later of two that hold", []act{told("1@10 1:a\n2@20 1:b\n3@30 1:c", "0 +a\n1 +b\n2 +c\n3 +d\n4 +e")}, "0 one 1 a 2 b 3 c 4 c"},
		{"in whatever order they are heard", []act{told("3@30 1:c\n1@10 1:a\n2@20 1:b\n1@10 1:a", "0 +a\n1 +b\n2 +c\n3 +d\n4 +e")}, "0 one 1 a 2 b 3 c 4 c"},
		{"a later one by time, from an earlier number", []act{told("4@10 1:a\n2@20 1:b", "0 +a\n1 +b\n2 +c\n4 +d\n3 +e")}, "0 one 1 a 2 b 3 b 4 b"},
		{"heard of with what waits", []act{batch("2 +c\n1 +b"), told("1 1:new", "0 +a")}, "0 one 1 new 2 new"},
		{"before a barrier that ends the wait", []act{batch("3 +c"), func(r *rig) {
			d := delivery{received: testEpoch, barriers: []callevent.Barrier{callevent.Interval(0, 3, callevent.CauseDropped)}, renames: []callevent.Rename{parseRename("2 1:new")}}
			r.take(d)
		}}, "3 new"},
		{"heard of late, of open calls", []act{batch("0 +a\n1 +b\n2 +c"), told("1 1:new", "")}, "0 one 1 new 2 new"},
		{"heard of late, by time", []act{batch("0 +a\n1 +b\n2 +c"), told("@15 1:new", "")}, "0 one 1 one 2 new"},
		{"heard of late, the first", []act{batch("0 +a\n1 +b"), told("5 first 1:new", "2 +c")}, "0 new 1 new 2 new"},
		{"heard of late, but not for what was told later", []act{batch("0 +a"), told("1@10 1:b", "1 +b"), told("0@0 1:a", "2 +c")}, "0 a 1 b 2 b"},
		{"heard of late, of calls that have ended", []act{batch("0 +a\n1 +b\n2 -b"), told("0 1:new", "3 +c")}, "0 new 1 one 3 new"},
		{"of a lane that is forgotten and comes again", []act{func(r *rig) { r.stream.settings.MaxLanes = 1 }, told("0 1:x\n1 2:y", "0 1:+a\n1 2:+a\n2 1:+b")}, "0 x 1 y 2 x"},
		{"the provisional one", []act{told("1@10 ~1 1:new", "0 +a\n1 +b")}, "0 one 1 new"},
		{"the better one of the two", []act{told("1@10 ~1 1:new", ""), told("2@20 #1 1:new", "0 +a\n1 +b\n2 +c")}, "0 one 1 one 2 new"},
		{"the better one of the two, heard of first", []act{told("2@20 #1 1:new", ""), told("1@10 ~1 1:new", "0 +a\n1 +b\n2 +c")}, "0 one 1 one 2 new"},
		{"the better one in the same batch", []act{told("1@10 ~1 1:new\n2@20 #1 1:new", "0 +a\n1 +b\n2 +c")}, "0 one 1 one 2 new"},
		{"the better one, for which it was too early", []act{told("0@0 first 1:old\n1@10 ~1 1:new", "0 +a\n1 +b"), told("2@20 #1 1:new", "2 +c")}, "0 old 1 old 2 new"},
		{"the better one, for which it was too early, before all that is known", []act{told("1@10 ~1 1:new", "0 +a\n1 +b"), told("2@20 #1 1:new", "2 +c")}, "0 one 1 new 2 new"},
		{"the better one, for which it was too late", []act{told("2@20 ~1 1:new", "0 +a\n1 +b"), told("1@10 #1 1:new", "2 +c")}, "0 one 1 new 2 new"},
		{"the better one of its own lane", []act{told("1@10 ~1 1:new\n2@20 #1 2:new", "0 +a\n1 +b\n2 2:+c")}, "0 one 1 new 2 new"},
		{"the better one of each", []act{told("1@10 ~1 1:a\n1@10 ~2 1:b", ""), told("1@10 #1 1:a\n2@10 #2 1:b", "0 +a\n1@10 +b\n2@10 +c\n3 +d")}, "0 one 1 b 2 b 3 b"},
		{"the later one of a tick", []act{told("@10 ~2 1:b\n@10 ~1 1:c", "0 +a\n1 +b"), told("@10 ~3 1:a", "2 +c")}, "0 one 1 a 2 a"},
		{"the later one of a tick, when the earlier is known better", []act{told("@10 ~2 1:b\n@10 ~1 1:c", "0 +a"), told("1@10 #1 1:c", "1 +b")}, "0 one 1 b"},
		{"after the end", []act{batch("0 +a", callevent.End(1, callevent.CauseEnded)), told("0 1:new", "1 +b")}, "0 one"},
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

// A thread that is renamed with every request, while the events wait for one that is
// missing: each has its name, and what is over is forgotten.
func TestManyRenames(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	const requests = 3000
	d := delivery{received: testEpoch}
	for i := range uint64(requests) {
		line := fmt.Sprintf("%d +f\n%d -f", 2*i+1, 2*i+2)
		for _, l := range strings.Split(line, "\n") {
			d.events = append(d.events, parseEvent(l))
		}
		d.renames = append(d.renames, callevent.Rename{
			Lane: 1, Sequence: 2*i + 1, Time: testEpoch + int64(2*i+1)*10, First: i == 0, Name: fmt.Sprint("request-", i),
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(d.renames), func(i, j int) { d.renames[i], d.renames[j] = d.renames[j], d.renames[i] })
	r.take(d)
	h := r.stream.stacks.renames.histories[1]
	if n := len(h.renames); n != requests {
		t.Fatalf("%d renames are remembered while events wait, expected %d", n, requests)
	}
	batch("0 .")(r)
	checkNoFault(t, r)
	for i, s := range r.spans {
		if want := fmt.Sprint("request-", i); s.LaneName != want {
			t.Fatalf("request %d is called %q", i, s.LaneName)
		}
	}
	if len(r.spans) != requests {
		t.Fatalf("%d spans", len(r.spans))
	}
	// From now on one is over when the next comes.
	for i := range uint64(20 * keptRenames) {
		n := 2*(requests+i) + 1
		d := delivery{received: testEpoch, renames: []callevent.Rename{{Lane: 1, Sequence: n, Time: testEpoch + int64(n)*10, Name: "again"}}}
		for _, l := range []string{fmt.Sprint(n, " +f"), fmt.Sprint(n+1, " -f")} {
			d.events = append(d.events, parseEvent(l))
		}
		r.take(d)
	}
	checkNoFault(t, r)
	if n := len(h.renames); n > 2*requests {
		t.Errorf("%d renames are remembered", n)
	}
	if !h.forgotten {
		t.Error("nothing was forgotten")
	}
}

// request is a call of lane 1, and a rename before it, as a tracer tells it.
func request(i uint64, name string) (events []happened, r callevent.Rename) {
	n := 2*i + 1
	return []happened{parseEvent(fmt.Sprint(n, " +f")), parseEvent(fmt.Sprint(n+1, " -f"))},
		callevent.Rename{Lane: 1, Sequence: n, Time: testEpoch + int64(n)*10, First: i == 0, Name: name, Order: uint32(i)}
}

// requests are those from one to another, with all renames in front.
func requests(from, to uint64) (d delivery) {
	d.received = testEpoch
	for i := from; i < to; i++ {
		events, r := request(i, fmt.Sprint("request-", i))
		d.events, d.renames = append(d.events, events...), append(d.renames, r)
	}
	return d
}

// Where more renames are to come than are remembered, no call has a wrong name: those
// whose renames were forgotten have none, and they are counted.
func TestTooManyRenamesAreCounted(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	const chunk, all = 2000, 6000
	for from := uint64(0); from < all; from += chunk {
		r.take(requests(from, from+chunk))
	}
	// It held until one that is forgotten.
	told("0@0 #9000 1:old", "0 .")(r)
	checkNoFault(t, r)
	unnamed := 0
	for i, s := range r.spans {
		switch s.LaneName {
		case fmt.Sprint("request-", i):
		case "":
			unnamed++
		default:
			t.Fatalf("request %d is called %q", i, s.LaneName)
		}
	}
	if len(r.spans) != all || unnamed == 0 || unnamed > all-maxRenames/2 {
		t.Errorf("%d of %d spans have no name", unnamed, len(r.spans))
	}
	if r.counters.DroppedRenames != uint64(unnamed)+1 {
		t.Errorf("%d spans have no name, %d renames were dropped", unnamed, r.counters.DroppedRenames)
	}
}

// One that is heard of when later ones were forgotten is forgotten too.
func TestARenameAmongThoseThatAreForgotten(t *testing.T) {
	settings := wide()
	for name, sequence := range map[string]func(i uint64) uint64{
		"by time":   func(uint64) uint64 { return callevent.MaxSequence },
		"by number": func(i uint64) uint64 { return 1_000_000 - i },
	} {
		r := newRig(&settings, 1)
		const rounds = 4
		told := uint64(0)
		for range rounds {
			d := delivery{received: testEpoch}
			for range callevent.MaxRenames {
				d.renames = append(d.renames, callevent.Rename{
					Lane: 1, Sequence: sequence(told), Time: testEpoch + farAway - int64(told), Order: uint32(told), Name: fmt.Sprint("n", told%10),
				})
				told++
			}
			r.take(d)
		}
		checkNoFault(t, r)
		h := r.stream.stacks.renames.histories[1]
		if n := uint64(len(h.renames)); n > maxRenames || r.counters.DroppedRenames+n != told {
			t.Errorf("%s: %d renames are remembered and %d dropped, of %d", name, n, r.counters.DroppedRenames, told)
		}
	}
}

// A lane of whose renames only the times are known forgets those that are over when no
// event can come that is so old.
func TestRenamesByTimeAreOver(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	const all, chunk = 3 * maxRenames, maxRenames / 16
	step := 4 * testJump / maxRenames
	batch("0 .")(r)
	for from := uint64(0); from < all; from += chunk {
		d := requests(from, from+chunk)
		for i := range d.renames {
			told := &d.renames[i]
			told.Sequence, told.Time = callevent.MaxSequence, testEpoch+int64(from+uint64(i))*step
			d.events[2*i].time, d.events[2*i+1].time, d.received = told.Time, told.Time, told.Time
		}
		r.take(d)
	}
	checkNoFault(t, r)
	for i, s := range r.spans {
		if want := fmt.Sprint("request-", i); s.LaneName != want {
			t.Fatalf("request %d is called %q", i, s.LaneName)
		}
	}
	if n := r.counters.DroppedRenames; n != 0 || len(r.spans) != all {
		t.Errorf("%d renames were dropped, %d spans", n, len(r.spans))
	}
	if n := len(r.stream.stacks.renames.histories[1].renames); n > maxRenames/2 {
		t.Errorf("%d renames are remembered", n)
	}
}

// A program that renames a thread with every request takes no more memory with time,
// and its other calls stay open.
func TestNamesThatLanesHadAreForgotten(t *testing.T) {
	settings := wide()
	settings.MaxNameBytes = 512 << 10
	r := newRig(&settings, 1)
	batch("0 2:+main")(r)
	const all = 20_000
	most := 0
	for from := uint64(0); from < all; from += 100 {
		r.take(requests(from, from+100))
		most = max(most, r.stream.names.bytes)
	}
	checkNoFault(t, r)
	for i, s := range r.spans {
		if want := fmt.Sprint("request-", i); s.LaneName != want {
			t.Fatalf("request %d is called %q", i, s.LaneName)
		}
	}
	if len(r.spans) != all || r.stream.OpenFrames() != 1 || r.counters.DroppedRenames != 0 {
		t.Errorf("%d spans, %d frames are open; %s", len(r.spans), r.stream.OpenFrames(), countersText(r.counters))
	}
	if limit := settings.MaxNameBytes/sweepShare + 64<<10; most > limit {
		t.Errorf("names took %d bytes, expected at most %d", most, limit)
	}
	if r.stream.Spare(); len(r.stream.names.laneNames) > 3 {
		t.Errorf("%d names are kept: %+v", len(r.stream.names.laneNames), r.stream.names.laneNames)
	}
}

// What open frames, waiting events and renames to come refer to is kept, whatever is
// forgotten beside.
func TestNamesThatAreInUseAreNotForgotten(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	spare := func(r *rig) {
		r.stream.Spare()
		r.collect()
	}
	for _, do := range []act{
		told("0 first 1:a\n2 1:b\n3 1:c", "0 +f\n1 +g\n2 +h\n3 +i\n4 2:+f\n5 2:-f\n6 ."),
		told("9 2:later\n20 1:d", "8 1:+j\n9 2:+g\n10 3:+f\n11 ."),
		spare,
		told("", "3000 4:+f"),
		spare, spare,
		told("", "7 ."),
		spare,
		told("", "12 1:+k\n13 2:+h"),
	} {
		do(r)
	}
	checkNoFault(t, r)
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

// What waits and is no call has no name.
func TestASkippedNumberKeepsNoName(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batch("0 +f\n1 -f\n9 .")(r)
	r.stream.Spare()
	r.collect()
	checkNoFault(t, r)
	if n := r.stream.names.laneNames; len(n) > 0 {
		t.Errorf("%+v is kept", n)
	}
}

// Names are gone through when they have become more, and not with each batch because
// there are many.
func TestNamesInUseAreNotGoneThroughAgainAndAgain(t *testing.T) {
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
		t.Errorf("%d names are kept, expected that of the lane that was left beside those of %d", n, lanes)
	}
}

// However much is told of lanes, and however far ahead, it takes a bounded memory, and
// costs no call its end.
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
				d.renames = append(d.renames, callevent.Rename{Lane: n % lanes, Sequence: n, Time: testEpoch + int64(n), Name: fmt.Sprint(n)})
			}
			r.take(d)
			most = max(most, r.stream.Bytes())
			for id, h := range r.stream.stacks.renames.histories {
				if len(h.renames) > maxRenames {
					t.Fatalf("%d renames of lane %d are remembered", len(h.renames), id)
				}
			}
		}
		checkNoFault(t, r)
		if limit := settings.MaxNameBytes + 2<<20; most > limit {
			t.Errorf("%d lanes: the stream took %d bytes, expected at most %d", lanes, most, limit)
		}
		kept := uint64(0)
		for _, h := range r.stream.stacks.renames.histories {
			kept += uint64(len(h.renames))
		}
		if n := r.counters.DroppedRenames; n == 0 || n+kept != 20*callevent.MaxRenames {
			t.Errorf("%d lanes: %d renames were dropped and %d are kept", lanes, n, kept)
		}
		if r.counters.Breaks[callevent.CauseLimit] != 0 || r.stream.OpenFrames() != 1 {
			t.Errorf("%d lanes: %d frames are open; %s", lanes, r.stream.OpenFrames(), countersText(r.counters))
		}
	}
}

// What is remembered of a batch's renames has memory of its own.
func TestRenamesAreNotTheBatchs(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	told("0 1:somebody", "0 +a")(r)
	checkNoFault(t, r)
	name := r.stream.names.laneNames[r.stream.stacks.lanes[0].name].name
	if name != "somebody" {
		t.Fatalf("the lane is called %q", name)
	}
	if unsafe.StringData(name) == unsafe.StringData(r.batch.Renames[0].Name) {
		t.Error("the name lies in the batch's memory")
	}
}
