// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// sortForNesting sorts spans so that an enclosing span is before those inside it.
func sortForNesting(spans []calltree.KeptSpan) {
	slices.SortFunc(spans, func(a, b calltree.KeptSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
}

// process is an instance of a service.
type process struct{ service, instance string }

// thread is a thread of a process. An ID identifies it, with any names, or its name if it has
// no ID.
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

// lane is a thread of a file. Two of its spans are nested or do not overlap.
type lane struct {
	id   int64
	ends []int64 // of the open spans, the innermost last
}

// admits reports whether the lane can have a span, and adds it then.
func (l *lane) admits(start, end int64) bool {
	for len(l.ends) > 0 && l.ends[len(l.ends)-1] <= start {
		l.ends = l.ends[:len(l.ends)-1]
	}
	if len(l.ends) > 0 && l.ends[len(l.ends)-1] < end {
		return false
	}
	l.ends = append(l.ends, end)
	return true
}

// mostLanes is the largest number of threads in the file for one thread. Further spans are on the
// last one, and may look as if they were nested.
const mostLanes = 256

// lanes are the lanes of all threads of a trace.
type lanes struct {
	byThread map[thread][]*lane
	number   int64
}

// of returns the lane of a span, which ends at end, and whether it is a new one. Spans must be
// sorted for nesting. The lanes have the numbers 1, 2, 3 in the order of their first spans.
func (ls *lanes) of(s *calltree.KeptSpan, end int64) (l *lane, isNew bool) {
	key := threadOf(s)
	all := ls.byThread[key]
	for _, l := range all {
		if l.admits(s.Start, end) {
			return l, false
		}
	}
	if len(all) == mostLanes {
		return all[mostLanes-1], false
	}
	ls.number++
	l = &lane{id: ls.number}
	l.admits(s.Start, end)
	if ls.byThread == nil {
		ls.byThread = map[thread][]*lane{}
	}
	ls.byThread[key] = append(all, l)
	return l, true
}

// processName returns the name of an instance of a service.
func processName(p process) string {
	name := Name(p.service)
	if p.instance != "" {
		name += " (" + Printable(p.instance) + ")"
	}
	return name
}

// threadName returns the name of a span's thread.
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
