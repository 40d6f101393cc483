// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"fmt"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// Notes describes data of the snapshot that has no place of its own: a sentence for each reason.
func Notes(s calltree.Snapshot) []string {
	below := make([]bool, len(s.Nodes)) // whether the caller was not seen, by node
	var missing, folded, deep uint64
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if below[i] = n.Mark == calltree.MissingParent || (n.Parent >= 0 && below[n.Parent]); below[i] {
			missing += n.Calls
		}
		switch {
		case n.Mark == calltree.Folded && n.Function == calltree.Folded.String():
			folded += n.Calls
		case n.Mark == calltree.Deep:
			deep += n.Calls
		}
	}
	items, missed := "Calls", "their callers have not ended, did not arrive, or were forgotten"
	if s.Kind != calltree.Calls {
		items, missed = "Samples", "their stacks are cut"
	}
	var notes []string
	noteMark := func(n uint64, mark calltree.Mark, why string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf("%s in %s: %s; %s.", items, mark, figures.Count(n), why))
		}
	}
	if m := s.Missing; m.Classes > 0 && s.Kind == calltree.Calls {
		notes = append(notes, fmt.Sprintf("The tracer could not instrument some classes: %s (%s). Their calls are missing, "+
			"so the functions that they called are directly below their callers.", figures.Count(uint64(m.Classes)), firstOf(m)))
	}
	if l := s.Lost.LeftOut; l.Calls > 0 && s.Kind == calltree.Calls {
		notes = append(notes, fmt.Sprintf("Calls without spans: %s, with %s errors and %v; stack_pairing left them out (min_duration, max_depth), "+
			"and their time is a part of their callers' own time.", figures.Count(l.Calls), figures.Count(l.Errors), time.Duration(l.Time)))
	}
	noteMark(missing, calltree.MissingParent, missed)
	if lost := s.Lost; lost.GivenUp > 0 || (lost.Forgotten > 0 && missing > 0) {
		notes = append(notes, fmt.Sprintf("Callers that were given up: %s, and calls that were forgotten: %s, for lack of room or time. "+
			"Their late callees are in %s. Their own time includes that of these callees.",
			figures.Count(lost.GivenUp), figures.Count(lost.Forgotten), calltree.MissingParent))
	}
	why := "their sender had no room for all paths"
	if s.Lost.FoldedPaths > 0 {
		why = fmt.Sprintf("%s paths were folded, because there was no room for all paths, or for their names", figures.Count(s.Lost.FoldedPaths))
	}
	noteMark(folded, calltree.Folded, why)
	noteMark(deep, calltree.Deep, fmt.Sprintf("%d levels are shown", calltree.MaxDepth))
	for _, remark := range s.Remarks {
		notes = append(notes, Printable(remark))
	}
	return notes
}

// firstOf returns the names of some missing classes, with an ellipsis if there are more.
func firstOf(m calltree.Missing) string {
	if int64(strings.Count(m.First, ",")+1) < m.Classes {
		return m.First + ", …"
	}
	return m.First
}
