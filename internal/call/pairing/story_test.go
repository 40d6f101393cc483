// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// story is a table test of a rule: actions on a stream, and the expected calls.
type story struct {
	name     string
	settings func(*Settings)
	do       []act
	// want are the spans in order of their numbers, one in a line:
	//	function#number [in function#number] start..end, and what is special.
	want string
	// counts are the counters that are not 0, except events and spans.
	counts string
	// open is the number of open frames at the end.
	open int
}

// act is an action on a stream.
type act func(r *rig)

// batch accepts a batch of events. Each event is a line: its number; perhaps @ and its time, which is otherwise ten
// times the number; perhaps a lane and a colon; and
//
//	+f enters f         -f exits f       - exits the top
//	!f E throws E in f  ^f E unwinds f   . is a skip
//	+f g enters f from g
//	*f enters f, with no other call open
//	~f E fails with E in f
func batch(events string, barriers ...callevent.Barrier) act {
	return batchOf(func(d *delivery) { d.barriers = barriers }, events)
}

// batchOf accepts a batch that change has changed before it is packed.
func batchOf(change func(*delivery), events string) act {
	return func(r *rig) {
		d := delivery{received: testEpoch}
		for line := range strings.Lines(events) {
			if line = strings.TrimSpace(line); line != "" {
				d.events = append(d.events, parseEvent(line))
			}
		}
		change(&d)
		r.take(d)
	}
}

func parseEvent(line string) (h happened) {
	fields := strings.Fields(line)
	number, at, timed := strings.Cut(fields[0], "@")
	h.sequence = parseNumber(number)
	h.time = testEpoch + int64(h.sequence)*10
	if timed {
		h.time = testEpoch + int64(parseNumber(at))
	}
	what := fields[1]
	h.lane = callevent.Lane{ID: 1, Name: "one"}
	if lane, rest, ok := strings.Cut(what, ":"); ok {
		what = rest
		h.lane = callevent.Lane{ID: parseNumber(lane), Name: "lane " + lane}
	}
	kinds := map[byte]callevent.Kind{
		'+': callevent.KindEnter, '-': callevent.KindExit, '!': callevent.KindThrow, '^': callevent.KindUnwind, '.': callevent.KindSkip,
		'*': callevent.KindEnterOutermost, '~': callevent.KindFail,
	}
	h.kind = kinds[what[0]]
	h.function = functionNamed(what[1:])
	if what == "-" {
		h.kind = callevent.KindExitTop
	}
	switch {
	case len(fields) <= 2:
	case h.kind == callevent.KindEnter:
		h.kind, h.caller = callevent.KindEnterFrom, functionNamed(fields[2])
	default:
		h.exception = fields[2]
	}
	return h
}

func parseNumber(s string) uint64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return uint64(n)
}

var functionsByName = map[string]*callevent.Function{}

func functionNamed(name string) *callevent.Function {
	if functionsByName[name] == nil {
		functionsByName[name] = &callevent.Function{Qualified: name, Display: name}
	}
	return functionsByName[name]
}

// announce accepts a batch without events. Its receiver has seen all numbers below next.
func announce(next uint64, barriers ...callevent.Barrier) act {
	return batchOf(func(d *delivery) { d.next, d.barriers = next, barriers }, "")
}

// after lets time pass, and the stream gives up overdue numbers.
func after(d time.Duration) act { return func(r *rig) { r.now += d; r.expire() } }

func giveUpOldest(r *rig) { r.giveUpOldest() }

func end(cause callevent.Cause) act { return func(r *rig) { r.end(cause) } }

func (s finishedShort) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s#%d", s.Function.Qualified, s.Sequence)
	if s.Parent != NoParent {
		fmt.Fprintf(&b, " in #%d", s.Parent)
	}
	fmt.Fprintf(&b, " %d..%d", s.Start-testEpoch, s.End-testEpoch)
	if s.Lane != 1 {
		fmt.Fprintf(&b, " lane %d", s.Lane)
	}
	if s.traces {
		fmt.Fprintf(&b, " trace %d", s.Trace)
	}
	switch s.Link {
	case LinkContinuation:
		fmt.Fprintf(&b, " continues %d", s.LinkTrace)
	case LinkTraceRoot:
		fmt.Fprintf(&b, " root from %d", s.LinkTrace)
	}
	if s.Truncated != 0 {
		fmt.Fprintf(&b, " truncated %s", s.Truncated)
	}
	if s.Unwound {
		fmt.Fprintf(&b, " unwound %q", s.ErrorType)
	}
	for _, t := range s.Throws {
		fmt.Fprintf(&b, " throws %q at %d", t.Type, t.Time-testEpoch)
	}
	if s.DroppedThrows > 0 {
		fmt.Fprintf(&b, " and %d more", s.DroppedThrows)
	}
	if s.LeftOut != (LeftOut{}) {
		fmt.Fprintf(&b, " left out %d calls, %d errors, %d ns", s.LeftOut.Calls, s.LeftOut.Errors, s.LeftOut.Time)
	}
	for _, a := range s.Attributes {
		fmt.Fprintf(&b, " %s=%s", a.Key, valueText(a.Value))
	}
	if r := s.Repeated; r != (Repeated{}) {
		fmt.Fprintf(&b, " %d calls of %d to %d ns, %d ns", r.Calls, r.Least, r.Greatest, r.Total)
	}
	if s.Kept != CriterionNone {
		fmt.Fprintf(&b, " kept: %s", s.Kept)
	}
	return b.String()
}

// finishedShort is a span in the text form of a story.
type finishedShort struct {
	finished
	// traces: the settings bound traces or have trace roots, so the text has traces.
	traces bool
}

// runStories runs the stories.
func runStories(t *testing.T, stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			settings := wide()
			if s.settings != nil {
				s.settings(&settings)
			}
			r := newRig(&settings, 1)
			for _, do := range s.do {
				do(r)
			}
			checkNoFault(t, r)
			slices.SortFunc(r.spans, func(a, b finished) int { return int(a.Sequence) - int(b.Sequence) })
			var got strings.Builder
			for _, span := range r.spans {
				fmt.Fprintln(&got, finishedShort{span, settings.MaxSpansPerTrace > 0 || settings.TraceRoot != nil})
			}
			if want := indented(s.want); got.String() != want {
				t.Errorf("spans:\n%sexpected:\n%s", got.String(), want)
			}
			counters := r.counters
			counters.Events, counters.Finished = 0, 0
			if got, want := countersText(counters), indented(s.counts); got != want {
				t.Errorf("counters:\n%sexpected:\n%s", got, want)
			}
			if r.stream.OpenFrames() != s.open {
				t.Errorf("%d frames are open, expected %d", r.stream.OpenFrames(), s.open)
			}
		})
	}
}

// indented is the text without the indentation of its lines.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
