// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// WriteChromeTrace writes a trace as Chrome's trace events (the "JSON Object Format" of the "Trace
// Event Format"), which Perfetto and chrome://tracing read. The file has a process for each
// instance of a service, a thread for each of its threads, and a complete event for each span.
// WriteChromeTrace sorts spans.
//
// Viewers nest the events of a thread by their times. Two spans of a thread can overlap without
// nesting, such as concurrent calls without a thread. The file has several threads of the same name
// for these.
//
// Times are microseconds since the trace's start, which is "start" in the file.
func WriteChromeTrace(w io.Writer, id calltree.TraceID, spans []calltree.KeptSpan) error {
	sortForNesting(spans)
	f := chromeFile{out: bufio.NewWriter(w), processes: map[process]int64{}}
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
	return f.out.Flush() // Flush returns all errors of writing
}

// chromeFile is a file that is being written.
type chromeFile struct {
	out       *bufio.Writer
	start     int64
	events    bool // the file has an event already
	processes map[process]int64
	lanes     lanes
}

// text, quoted and micros drop errors of writing: Flush returns them.
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

// begin writes the common beginning of all events.
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
	f.micros(uint64(s.Start) - uint64(f.start)) // right even if the difference overflows
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

// process returns the number of a process. The first call for a process writes its name.
func (f *chromeFile) process(p process) int64 {
	id, ok := f.processes[p]
	if !ok {
		id = int64(len(f.processes) + 1)
		f.processes[p] = id
		f.metadata("process_name", processName(p), id, 0)
	}
	return id
}

// lane returns the lane of a span. The first call for a lane writes its name.
func (f *chromeFile) lane(process int64, s *calltree.KeptSpan, end int64) *lane {
	l, isNew := f.lanes.of(s, end)
	if isNew {
		f.metadata("thread_name", threadName(s), process, l.id)
	}
	return l
}

func (f *chromeFile) metadata(kind, name string, process, thread int64) {
	f.begin("M", process, thread)
	f.text(`"name":`)
	f.quoted(kind)
	f.text(`,"args":{"name":`)
	f.quoted(name)
	f.text("}}")
}
