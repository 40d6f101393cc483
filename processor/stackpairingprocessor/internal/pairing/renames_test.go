// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/callbraid/callbraid/internal/callevent"
)

// told takes a batch that has renames beside its events. Each is in a line: the
// number, @ and the time from which it holds, of which one may be missing; first, if
// it is; and lane:name.
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
	r.First = fields[1] == "first"
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
	h := r.stream.names.histories[1]
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

// However much is told of lanes, and however far ahead, it takes a bounded memory.
func TestRenamesAreBounded(t *testing.T) {
	settings := wide()
	settings.MaxNameBytes = 4 << 20
	r := newRig(&settings, 1)
	most := 0
	for i := range uint64(40) {
		d := delivery{received: testEpoch}
		for j := range uint64(callevent.MaxRenames) {
			n := callevent.MaxRenames*i + j
			d.renames = append(d.renames, callevent.Rename{Lane: n % 3, Sequence: n, Time: testEpoch + int64(n), Name: fmt.Sprint(n)})
		}
		r.take(d)
		most = max(most, r.stream.Bytes())
		for id, h := range r.stream.names.histories {
			if len(h.renames) > maxRenames {
				t.Fatalf("%d renames of lane %d are remembered", len(h.renames), id)
			}
		}
	}
	checkNoFault(t, r)
	if limit := settings.MaxNameBytes + 2<<20; most > limit {
		t.Errorf("the stream took %d bytes, expected at most %d", most, limit)
	}
	if r.counters.Breaks[callevent.CauseLimit] == 0 {
		t.Error("the names were never forgotten")
	}
}

// What is remembered of a batch's renames has memory of its own.
func TestRenamesAreNotTheBatchs(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	told("0 1:somebody", "0 +a")(r)
	checkNoFault(t, r)
	name := r.stream.names.laneNames[r.stream.lanes[0].name].name
	if name != "somebody" {
		t.Fatalf("the lane is called %q", name)
	}
	if unsafe.StringData(name) == unsafe.StringData(r.batch.Renames[0].Name) {
		t.Error("the name lies in the batch's memory")
	}
}
