// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/calltree"
	"github.com/callbraid/callbraid/internal/figures"
)

// Notes says what in the snapshot has no place of its own, and why: a sentence for each
// reason that there is.
func Notes(s calltree.Snapshot) []string {
	below := make([]bool, len(s.Nodes)) // whether callers were not seen, by node
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
	what, missed := "Calls", "what called them has not ended, or did not come"
	if s.Kind != calltree.Calls {
		what, missed = "Samples", "their stacks are cut"
	}
	var notes []string
	say := func(n uint64, mark calltree.Mark, why string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf("%s in %s: %s; %s.", what, mark, figures.Count(n), why))
		}
	}
	say(missing, calltree.MissingParent, missed)
	say(folded, calltree.Folded, "there were more paths, or longer names, than there is room for")
	say(deep, calltree.Deep, fmt.Sprintf("%d levels are shown", calltree.MaxDepth))
	return notes
}
