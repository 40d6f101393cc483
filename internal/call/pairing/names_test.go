// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// The strings of a batch share one memory. A stream may keep strings for hours, so its copies have their own memory.
func TestTheStringsOfAStreamAreCopiesOfThoseInTheBatch(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	f := &callevent.Function{Qualified: "qualified", Display: "display", Text: "text", File: "file"}
	lane := callevent.Lane{ID: 1, Name: "lane"}
	value := []Attribute{{"key", callevent.StringValue("value")}}
	r.take(delivery{received: testEpoch, events: []happened{
		{sequence: 0, time: testEpoch, kind: callevent.KindEnter, lane: lane, function: f, attributes: value},
		{sequence: 1, time: testEpoch, kind: callevent.KindThrow, lane: lane, function: f, exception: "exception"},
		{sequence: 3, time: testEpoch, kind: callevent.KindExit, lane: lane, function: f, attributes: value},
	}})
	checkNoFault(t, r)

	from, to := ^uintptr(0), uintptr(0)
	batchs := func(s string) {
		at := uintptr(unsafe.Pointer(unsafe.StringData(s)))
		from, to = min(from, at), max(to, at+uintptr(len(s)))
	}
	b := &r.batch
	for _, s := range []string{b.Functions[0].Qualified, b.Functions[0].Text, b.Lanes[0].Name, b.Exceptions[0], b.Values[0].Str(), b.Values[1].Str()} {
		batchs(s)
	}
	if n := to - from; n == 0 || n > 1000 {
		t.Fatalf("the strings of the batch are %d bytes", n)
	}
	kept := map[string]string{}
	keep := func(what, s, want string) {
		kept[what] = s
		if s != want {
			t.Errorf("the %s is %q, expected %q", what, s, want)
		}
	}
	s := r.stream
	name := s.names.functions[0].name
	keep("qualified name", name.Qualified, "qualified")
	keep("display name", name.Display, "display")
	keep("text", name.Text, "text")
	keep("file", name.File, "file")
	keep("lane's name", s.names.laneNames[0].name, "lane")
	keep("exception", s.names.exceptions[1], "exception")
	keep("type of a throw", s.stacks.lanes[0].throws[0].Type, "exception")
	keep("key of a frame's attribute", s.stacks.lanes[0].attributes[0].key.value.Str(), "key")
	keep("value of a frame's attribute", s.stacks.lanes[0].attributes[0].value.value.Str(), "value")
	keep("key of a waiting attribute", s.order.attributes.byNumber[3][0].key.value.Str(), "key")
	keep("value of a waiting attribute", s.order.attributes.byNumber[3][0].value.value.Str(), "value")
	for f := range s.names.functionIDs {
		keep("function's key", f.Qualified, "qualified")
		keep("text in the function's key", f.Text, "text")
	}
	for l := range s.names.laneNameIDs {
		keep("lane's key", l.Name, "lane")
	}
	for e, id := range s.names.exceptionIDs {
		if id != 0 {
			keep("exception's key", e, "exception")
		}
	}
	for what, text := range kept {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); at >= from && at < to {
			t.Errorf("the %s is in the memory of the batch", what)
		}
	}
}

func TestAnExceptionWithoutATextIsNone(t *testing.T) {
	n := newNames()
	n.setBatch(&callevent.Batch{Exceptions: []string{"Failure", ""}}, nil)
	if none, failure := n.batchExceptions[2], n.batchExceptions[1]; none != 0 || n.exceptions[failure] != "Failure" {
		t.Errorf("numbers %v of %q", n.batchExceptions, n.exceptions)
	}
}

func TestLanesThatAreForgottenWithTheirNamesReleaseTheirContinuationTraces(t *testing.T) {
	settings := wide()
	settings.MaxSpansPerTrace = 1
	r := newRig(&settings, 1)
	for n := range uint64(50) {
		batchOf(func(d *delivery) {
			for i := range d.events {
				d.events[i].sequence += 4 * n
			}
		}, fmt.Sprintf("0 %[1]d:+f\n1 %[1]d:+g\n2 %[1]d:-g\n3 %[1]d:-f", n))(r)
		r.stream.Forget(&r.out)
		r.collect()
	}
	checkNoFault(t, r)
	if n := len(r.stream.stacks.traces.all); n > 2 {
		t.Errorf("%d traces are remembered", n)
	}
}
