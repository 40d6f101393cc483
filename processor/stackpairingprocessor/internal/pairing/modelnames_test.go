// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/callbraid/callbraid/internal/callevent"
)

// compareTold orders renames of a lane.
func compareTold(a, b callevent.Rename) int {
	first := func(r callevent.Rename) int {
		if r.First {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(first(a), first(b)), strings.Compare(a.Name, b.Name))
}

// renamed is what the lane's name at an event comes from: of its renames, the last
// that holds; before all, its first name. nil: not known.
func (m *calls) renamed(lane, sequence uint64, time int64) (last *callevent.Rename) {
	of := slices.DeleteFunc(slices.Clone(m.renames), func(r callevent.Rename) bool { return r.Lane != lane })
	slices.SortFunc(of, compareTold)
	for i, r := range of {
		if i == 0 && r.First || sequence >= r.Sequence || time >= r.Time {
			last = &r
		}
	}
	return last
}

// rename hears of the renames of a batch. They are applied to open calls; what is
// known of the time of their entry is their start.
func (m *calls) rename(told []callevent.Rename) {
	var fresh []callevent.Rename
	for _, r := range told {
		if !slices.Contains(m.renames, r) {
			m.renames, fresh = append(m.renames, r), append(fresh, r)
		}
	}
	for lane, stack := range m.stacks {
		for _, c := range stack {
			if last := m.renamed(lane, c.entry.sequence, c.start-m.offset); last != nil && slices.Contains(fresh, *last) {
				c.name = last.Name
			}
		}
	}
}
