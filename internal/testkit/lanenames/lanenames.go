// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lanenames applies the renames of all batches of one call stream to its events, slowly and obviously.
package lanenames

import (
	"cmp"
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Sorted returns each rename once, in the order of time.
func Sorted(renames []callevent.Rename) []callevent.Rename {
	sorted := slices.Clone(renames)
	slices.SortFunc(sorted, func(a, b callevent.Rename) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Rank, b.Rank))
	})
	return slices.Compact(sorted)
}

// At returns the name of a lane at a time, by sorted renames. Without a rename it is the name in the event's batch.
func At(sorted []callevent.Rename, lane uint64, time int64, inBatch string) string {
	name, known := inBatch, false
	for _, r := range sorted {
		if r.Lane != lane {
			continue
		}
		if r.First && !known || time >= r.Time {
			name = r.Name
		}
		known = true
	}
	return name
}
