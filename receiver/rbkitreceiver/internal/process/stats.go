// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"math"
	"slices"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
)

// Stats are the last statistics of the garbage collector, by their keys.
type Stats map[string]int64

// maxStats bounds the keys, which servers choose.
const maxStats = 256

// replaceBy replaces the statistics with those of a message that are whole numbers, under the keys of
// current Rubies. The first of equal keys wins.
func (s Stats) replaceBy(all rbkit.Stats) {
	clear(s)
	for key, number := range all.All() {
		value, whole := wholeNumber(number)
		if !whole || len(s) >= maxStats {
			continue
		}
		key := presentKey(key)
		if _, known := s[key]; !known {
			s[key] = value
		}
	}
}

// presentKey returns the key of a statistic in current Rubies.
func presentKey(key []byte) string {
	if present, ok := FormerKeys[string(key)]; ok {
		return present
	}
	return names.ValidText(key)
}

// growing are statistics that never fall while a process lives.
var growing = [...]string{"count", "total_allocated_objects"}

// fell reports whether statistics are of another process than the last ones.
func (s Stats) fell(now rbkit.Stats) bool {
	for key, number := range now.All() {
		key := presentKey(key)
		if !slices.Contains(growing[:], key) {
			continue
		}
		before, known := s[key]
		if value, whole := wholeNumber(number); known && whole && value < before {
			return true
		}
	}
	return false
}

// maxExact bounds the whole numbers that a float holds exactly.
const maxExact = 1 << 53

// wholeNumber returns a number, if it is a whole number that metrics can have.
func wholeNumber(n rbkit.Number) (int64, bool) {
	if !n.IsFloat {
		return n.Integer, true
	}
	if n.Float != math.Trunc(n.Float) || math.Abs(n.Float) >= maxExact {
		return 0, false
	}
	return int64(n.Float), true
}

// FormerKeys are the keys of Rubies before 2.2, with their current keys.
var FormerKeys = map[string]string{
	"heap_increment":                 "heap_allocatable_pages",
	"heap_used":                      "heap_allocated_pages",
	"heap_eden_page_length":          "heap_eden_pages",
	"heap_final_slot":                "heap_final_slots",
	"heap_final_num":                 "heap_final_slots",
	"heap_free_slot":                 "heap_free_slots",
	"heap_free_num":                  "heap_free_slots",
	"heap_live_slot":                 "heap_live_slots",
	"heap_live_num":                  "heap_live_slots",
	"heap_length":                    "heap_sorted_length",
	"heap_swept_slot":                "heap_swept_slots",
	"heap_tomb_page_length":          "heap_tomb_pages",
	"malloc_increase":                "malloc_increase_bytes",
	"malloc_limit":                   "malloc_increase_bytes_limit",
	"old_object":                     "old_objects",
	"old_object_limit":               "old_objects_limit",
	"oldmalloc_increase":             "oldmalloc_increase_bytes",
	"oldmalloc_limit":                "oldmalloc_increase_bytes_limit",
	"remembered_shady_object":        "remembered_wb_unprotected_objects",
	"remembered_shady_objects":       "remembered_wb_unprotected_objects",
	"remembered_shady_object_limit":  "remembered_wb_unprotected_objects_limit",
	"remembered_shady_objects_limit": "remembered_wb_unprotected_objects_limit",
	"total_allocated_object":         "total_allocated_objects",
	"total_freed_object":             "total_freed_objects",
}
