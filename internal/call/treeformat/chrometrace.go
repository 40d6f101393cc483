// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// WriteChromeTrace writes a trace as Chrome's trace events (the "JSON Object Format" of
// the "Trace Event Format"), which Perfetto and chrome://tracing read: a process for each
// instance of a service, a thread for each of its threads, and a complete event for each span. The spans
// are put in another order.
//
// Viewers nest the events of a thread by their times. Spans that overlap and neither of
// which lies inside the other, as those of concurrent calls without a thread do, are on
// several threads of the same name.
//
// Times are microseconds since the trace's start, which the file tells as "start".
func WriteChromeTrace(w io.Writer, id calltree.TraceID, spans []calltree.KeptSpan) error {
	sortForNesting(spans)
	f := chromeFile{out: bufio.NewWriter(w), processes: map[process]int64{}, lanes: map[thread][]*lane{}}
	if len(spans) > 0 {
		f.start = spans[0].Start
	}
	f.text(`{"displayTimeUnit":"ns","otherData":{"trace_id":`)
	f.quoted(hex.EncodeToString(id[:]))
	f.text(`,"start":`)
	f.quoted(time.Unix(0, f.start).UTC().Format(time.RFC3339Nano))
	f.text(`},"traceEvents":[`)
	for i := range spans {
		f.writeSpan(&spans[i])
	}
	f.text("]}\n")
	return f.out.Flush() // all errors of writing come with it
}

// sortForNesting puts spans behind those that they lie in.
func sortForNesting(spans []calltree.KeptSpan) {
	slices.SortFunc(spans, func(a, b calltree.KeptSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
}

// process is an instance of a service.
type process struct{ service, instance string }

// thread is one of a process: by its ID, whatever names it has, or by its name where no
// ID was told.
type thread struct {
	process process
	id      int64
	name    string
}

func threadOf(s *calltree.KeptSpan) thread {
	of := process{s.Service, s.Instance}
	if s.Thread != 0 {
		return thread{process: of, id: s.Thread}
	}
	return thread{process: of, name: s.ThreadName}
}

// lane is a thread of the file: spans on it lie one inside or behind the other.
type lane struct {
	id   int64
	ends []int64 // of the spans that are open, the innermost last
}

// holds says whether a span can be on the lane, and puts it there.
func (l *lane) holds(start, end int64) bool {
	for len(l.ends) > 0 && l.ends[len(l.ends)-1] <= start {
		l.ends = l.ends[:len(l.ends)-1]
	}
	if len(l.ends) > 0 && l.ends[len(l.ends)-1] < end {
		return false
	}
	l.ends = append(l.ends, end)
	return true
}

// mostLanes is on how many threads of the file spans of one thread can be. Spans beyond
// are on the last, and may look as if they lay in others there.
const mostLanes = 256

// chromeFile is a file while it is written.
type chromeFile struct {
	out       *bufio.Writer
	start     int64
	events    bool // there are some already
	processes map[process]int64
	lanes     map[thread][]*lane
	threads   int64 // how many threads the file has
}

// text, quoted and micros write without an error: it comes again with Flush.
func (f *chromeFile) text(s string)   { f.out.WriteString(s) }
func (f *chromeFile) quoted(s string) { f.out.Write(quoted(s)) }

// micros writes nanoseconds as microseconds.
func (f *chromeFile) micros(ns uint64) {
	b := strconv.AppendUint(f.out.AvailableBuffer(), ns/1000, 10)
	if rest := ns % 1000; rest != 0 {
		b = append(b, '.', '0'+byte(rest/100), '0'+byte(rest/10%10), '0'+byte(rest%10))
	}
	f.out.Write(b)
}

// begin writes what all events begin with.
func (f *chromeFile) begin(phase string, process, thread int64) {
	if f.events {
		f.text(",")
	}
	f.events = true
	fmt.Fprintf(f.out, "\n"+`{"ph":"%s","pid":%d,"tid":%d,`, phase, process, thread)
}

func (f *chromeFile) writeSpan(s *calltree.KeptSpan) {
	process := f.process(process{s.Service, s.Instance})
	end := max(s.End, s.Start)
	lane := f.lane(process, s, end)
	f.begin("X", process, lane.id)
	f.text(`"ts":`)
	f.micros(uint64(s.Start) - uint64(f.start)) // right even where the difference overflows
	f.text(`,"dur":`)
	f.micros(uint64(end) - uint64(s.Start))
	f.text(`,"cat":"span","name":`)
	f.quoted(Name(s.Function))
	fmt.Fprintf(f.out, `,"args":{"span_id":"%x"`, s.ID)
	if s.Parent != (calltree.SpanID{}) {
		fmt.Fprintf(f.out, `,"parent_span_id":"%x"`, s.Parent)
	}
	if s.File != "" {
		f.text(`,"file":`)
		f.quoted(Printable(s.File))
	}
	if s.Line != 0 {
		fmt.Fprintf(f.out, `,"line":%d`, s.Line)
	}
	if s.Error {
		f.text(`,"error":true`)
	}
	if s.Truncated {
		f.text(`,"truncated":true`)
	}
	f.text("}}")
}

// process is the number of a process; its name is written where it is met first.
func (f *chromeFile) process(p process) int64 {
	id, ok := f.processes[p]
	if !ok {
		id = int64(len(f.processes) + 1)
		f.processes[p] = id
		name := Name(p.service)
		if p.instance != "" {
			name += " (" + Printable(p.instance) + ")"
		}
		f.metadata("process_name", name, id, 0)
	}
	return id
}

// lane is the one that a span is on.
func (f *chromeFile) lane(process int64, s *calltree.KeptSpan, end int64) *lane {
	key := threadOf(s)
	for _, l := range f.lanes[key] {
		if l.holds(s.Start, end) {
			return l
		}
	}
	if lanes := f.lanes[key]; len(lanes) == mostLanes {
		return lanes[mostLanes-1]
	}
	f.threads++
	l := &lane{id: f.threads}
	l.holds(s.Start, end)
	f.lanes[key] = append(f.lanes[key], l)
	f.metadata("thread_name", threadName(s), process, l.id)
	return l
}

// threadName is what a span's thread is called.
func threadName(s *calltree.KeptSpan) string {
	switch {
	case s.Thread == 0 && s.ThreadName == "":
		return "calls"
	case s.ThreadName == "":
		return fmt.Sprintf("thread %d", s.Thread)
	case s.Thread == 0:
		return Printable(s.ThreadName)
	}
	return fmt.Sprintf("%s (%d)", Printable(s.ThreadName), s.Thread)
}

func (f *chromeFile) metadata(what, name string, process, thread int64) {
	f.begin("M", process, thread)
	f.text(`"name":`)
	f.quoted(what)
	f.text(`,"args":{"name":`)
	f.quoted(name)
	f.text("}}")
}
