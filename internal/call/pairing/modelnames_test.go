// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// nameAt is the rename with the lane's name at a time: the last rename that is not later. Before all renames it is the earliest,
// if that has the lane's first name. nil: the renames do not name the lane at that time.
func nameAt(all []callevent.Rename, lane uint64, time int64) (last *callevent.Rename) {
	of := slices.DeleteFunc(slices.Clone(all), func(r callevent.Rename) bool { return r.Lane != lane })
	slices.SortFunc(of, func(a, b callevent.Rename) int {
		byFirst := 0
		if a.First != b.First && a.First {
			byFirst = -1
		} else if a.First != b.First {
			byFirst = 1
		}
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Rank, b.Rank), byFirst, strings.Compare(a.Name, b.Name))
	})
	for i, r := range of {
		if i == 0 && r.First || r.Time <= time {
			last = &r
		}
	}
	return last
}

// rename adds the renames of a batch. Open calls get the names that the new renames change. The model knows only the start of
// an open call, not the time of its entry on the source's clock.
func (m *calls) rename(added []callevent.Rename) {
	before := m.renames
	m.renames = append(slices.Clone(m.renames), added...)
	for lane, stack := range m.stacks {
		for _, c := range stack {
			was, is := nameAt(before, lane, c.start-m.offset), nameAt(m.renames, lane, c.start-m.offset)
			if is != nil && (was == nil || *was != *is) {
				c.name = is.Name
			}
		}
	}
}
