// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lanenames applies the renames of all batches of one call stream to its events, slowly and obviously.
package lanenames

import (
	"cmp"
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Final returns each rename once, as it was known last, in the order of time.
func Final(renames []callevent.Rename) []callevent.Rename {
	final := slices.Clone(renames)
	slices.SortFunc(final, func(a, b callevent.Rename) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Order, b.Order))
	})
	final = slices.Compact(final)
	confirmed := map[uint32]bool{}
	for _, r := range final {
		confirmed[r.Order] = confirmed[r.Order] || !r.Provisional
	}
	return slices.DeleteFunc(final, func(r callevent.Rename) bool { return r.Provisional && confirmed[r.Order] })
}

// At returns the name of a lane at an event, by final renames. Without a rename it is the name in the event's batch.
func At(final []callevent.Rename, lane, sequence uint64, time int64, inBatch string) string {
	name, known := inBatch, false
	for _, r := range final {
		if r.Lane != lane {
			continue
		}
		if r.First && !known || sequence >= r.Sequence || time >= r.Time {
			name = r.Name
		}
		known = true
	}
	return name
}
