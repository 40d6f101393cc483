// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// speedscopeSchema identifies files of speedscope.
const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

// speedscopeProfile is one of the profiles in a file.
type speedscopeProfile struct {
	name  string
	unit  string // one of speedscope's units
	value func(*calltree.Node) int64
}

// WriteSpeedscope writes the snapshot as a file of speedscope. It has profiles of self time, calls,
// and errors if there are any. For trees of profiles it has one of the value. Each path is opened
// and closed once, at any depth, with its whole value between. Paths without value are
// omitted.
func WriteSpeedscope(w io.Writer, s calltree.Snapshot) error {
	f := speedscopeFile{out: bufio.NewWriter(w), nodes: s.Nodes, frames: map[place]int{}}
	f.begin(Name(s.Service))
	f.writeFrames()
	f.text(`]},"profiles":[`)
	for i, p := range speedscopeProfiles(s) {
		if i > 0 {
			f.text(",")
		}
		f.writeProfile(p)
	}
	f.text("]}\n")
	return f.out.Flush() // Flush returns all errors of writing
}

func speedscopeProfiles(s calltree.Snapshot) []speedscopeProfile {
	if s.Kind != calltree.Calls {
		return []speedscopeProfile{{Name(s.Kind.Type), speedscopeUnit(s.Kind.Unit), selfOf}}
	}
	profiles := []speedscopeProfile{
		{sampleTime, unitNanoseconds, selfOf},
		{sampleCalls, "none", callsOf},
	}
	for i := range s.Nodes {
		if s.Nodes[i].Errors != 0 {
			return append(profiles, speedscopeProfile{sampleErrors, "none", errorsOf})
		}
	}
	return profiles
}

// speedscopeUnit returns speedscope's name for a unit of profiles.
func speedscopeUnit(unit string) string {
	switch unit {
	case "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes":
		return unit
	case "ns":
		return "nanoseconds"
	case "us":
		return "microseconds"
	case "ms":
		return "milliseconds"
	case "s":
		return "seconds"
	case "By":
		return "bytes"
	}
	return "none"
}

// speedscopeFile is a file that is being written.
type speedscopeFile struct {
	out    *bufio.Writer
	nodes  []calltree.Node
	frames map[place]int // indexes in the table of frames
	events bool          // the profile has an event already
}

// text, string and number drop errors of writing: Flush returns them.
func (f *speedscopeFile) text(s string) { f.out.WriteString(s) }
func (f *speedscopeFile) number(n int64) {
	f.out.Write(strconv.AppendInt(f.out.AvailableBuffer(), n, 10))
}
func (f *speedscopeFile) string(s string) { f.out.Write(quoted(s)) }

// failed reports whether writing failed already. Then the rest is not built.
func (f *speedscopeFile) failed() bool {
	_, err := f.out.Write(nil)
	return err != nil
}

// quoted returns a printable text in JSON.
func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings have no error
	}
	return b
}

// begin writes the beginning of a file up to its frames.
func (f *speedscopeFile) begin(name string) {
	f.text(`{"$schema":`)
	f.string(speedscopeSchema)
	f.text(`,"exporter":"callbraid","name":`)
	f.string(name)
	f.text(`,"activeProfileIndex":0,"shared":{"frames":[`)
}

func (f *speedscopeFile) writeFrames() {
	for i := range f.nodes {
		if f.failed() {
			return
		}
		f.writeFrame(&f.nodes[i])
	}
}

// writeFrame writes the frame of a node, unless it is in the file.
func (f *speedscopeFile) writeFrame(n *calltree.Node) {
	key := placeOf(n)
	if _, ok := f.frames[key]; ok {
		return
	}
	if len(f.frames) > 0 {
		f.text(",")
	}
	f.frames[key] = len(f.frames)
	f.text(`{"name":`)
	f.string(nameOf(n))
	if n.File != "" {
		f.text(`,"file":`)
		f.string(Printable(n.File))
	}
	if n.Line > 0 {
		f.text(`,"line":`)
		f.number(n.Line)
	}
	f.text("}")
}

// beginProfile writes the beginning of a profile up to its events.
func (f *speedscopeFile) beginProfile(name, unit string, end int64) {
	f.text(`{"type":"evented","name":`)
	f.string(name)
	f.text(`,"unit":`)
	f.string(unit)
	f.text(`,"startValue":0,"endValue":`)
	f.number(end)
	f.text(`,"events":[`)
	f.events = false
}

// event writes that a frame is opened ("O") or closed ("C").
func (f *speedscopeFile) event(kind string, frame int, at int64) {
	if f.events {
		f.text(",")
	}
	f.events = true
	f.text(`{"type":"`)
	f.text(kind)
	f.text(`","frame":`)
	f.number(int64(frame))
	f.text(`,"at":`)
	f.number(at)
	f.text("}")
}

func (f *speedscopeFile) writeProfile(p speedscopeProfile) {
	w := weights(f.nodes, p.value)
	var end int64
	for i := range f.nodes {
		if f.nodes[i].Parent < 0 {
			end = add(end, w[i])
		}
	}
	f.beginProfile(p.name, p.unit, end)
	f.writeEvents(w)
	f.text("]}")
}

// openFrame is a node whose subtree is being written.
type openFrame struct {
	node int32
	end  int64
	next int64 // the begin of its next child
}

// writeEvents writes the opening and closing of each node with a value. Its children are one after
// the other at its beginning.
func (f *speedscopeFile) writeEvents(w []int64) {
	open := []openFrame{{node: -1}} // the first is for the top
	event := func(kind string, node int32, at int64) {
		f.event(kind, f.frames[placeOf(&f.nodes[node])], at)
	}
	closeTo := func(node int32) {
		for last := open[len(open)-1]; last.node != node; last = open[len(open)-1] {
			event("C", last.node, last.end)
			open = open[:len(open)-1]
		}
	}
	for i := range f.nodes {
		if f.failed() {
			return
		}
		if w[i] == 0 { // and so do all nodes below
			continue
		}
		closeTo(f.nodes[i].Parent)
		parent := &open[len(open)-1]
		begin := parent.next
		parent.next = add(begin, w[i]) // not beyond its end, because of the weights
		open = append(open, openFrame{node: int32(i), next: begin, end: parent.next})
		event("O", int32(i), begin)
	}
	closeTo(-1)
}
