// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// compareTold orders renames of a lane.
func compareTold(a, b callevent.Rename) int {
	first := func(yes bool) int {
		if yes {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Order, b.Order),
		cmp.Compare(first(a.Provisional), first(b.Provisional)), cmp.Compare(first(a.First), first(b.First)), strings.Compare(a.Name, b.Name))
}

// renamed is what the lane's name at an event comes from: of its renames, the last
// that holds; before all, its first name. nil: not known.
func renamed(all []callevent.Rename, lane, sequence uint64, time int64) (last *callevent.Rename) {
	of := slices.DeleteFunc(slices.Clone(all), func(r callevent.Rename) bool { return r.Lane != lane || givesWay(r, all) })
	slices.SortFunc(of, compareTold)
	for i, r := range of {
		if i == 0 && r.First || sequence >= r.Sequence || time >= r.Time {
			last = &r
		}
	}
	return last
}

// givesWay reports whether something better than the rename is known.
func givesWay(r callevent.Rename, all []callevent.Rename) bool {
	return r.Provisional && slices.ContainsFunc(all, func(other callevent.Rename) bool {
		return other.Lane == r.Lane && other.Order == r.Order && !other.Provisional
	})
}

// rename hears of the renames of a batch. Open calls have the names that come of
// those; what is known of the time of their entry is their start.
func (m *calls) rename(told []callevent.Rename) {
	before := m.renames
	m.renames = append(slices.Clone(m.renames), told...)
	for lane, stack := range m.stacks {
		for _, c := range stack {
			was, is := renamed(before, lane, c.entry.sequence, c.start-m.offset), renamed(m.renames, lane, c.entry.sequence, c.start-m.offset)
			if is != nil && (was == nil || *was != *is) {
				c.name = is.Name
			}
		}
	}
}
