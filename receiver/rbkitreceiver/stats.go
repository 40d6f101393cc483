// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
)

// stats are the last statistics of the garbage collector, by their keys.
type stats map[string]int64

// maxStats is how many keys are kept that servers may choose.
const maxStats = 256

// set replaces the statistics by those with whole numbers, under the keys of current
// Rubies. The first of equal keys wins.
func (s stats) set(all rbkit.Stats) {
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
	if present, ok := formerKeys[string(key)]; ok {
		return present
	}
	return names.ValidText(key)
}

// growing are statistics that never fall while a process lives.
var growing = [...]string{"count", "total_allocated_objects"}

// fell reports whether these can't be statistics of the process that the last ones are of.
func (s stats) fell(now rbkit.Stats) bool {
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

// wholeNumber is the number, if it is a whole one that metrics can have.
func wholeNumber(n rbkit.Number) (int64, bool) {
	if !n.IsFloat {
		return n.Integer, true
	}
	if n.Float != math.Trunc(n.Float) || math.Abs(n.Float) >= maxExact {
		return 0, false
	}
	return int64(n.Float), true
}

// inSeconds records a statistic of milliseconds as seconds, the unit of durations.
func inSeconds(record func(*metadata.MetricsBuilder, pcommon.Timestamp, float64)) func(*metadata.MetricsBuilder, pcommon.Timestamp, int64) {
	return func(b *metadata.MetricsBuilder, at pcommon.Timestamp, milliseconds int64) {
		record(b, at, float64(milliseconds)/1000)
	}
}

// unmeasured are the keys of statistics without a metric of their own, sorted.
func (s stats) unmeasured() (keys []string) {
	for key := range s {
		if _, of := statMetrics[key]; !of {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// statMetrics are the metrics of statistics by the keys of GC.stat, and of
// ObjectSpace.memsize_of_all and the size of the heap, which servers add.
var statMetrics = map[string]func(*metadata.MetricsBuilder, pcommon.Timestamp, int64){
	"compact_count":                           (*metadata.MetricsBuilder).RecordRubyGcCompactCountDataPoint,
	"count":                                   (*metadata.MetricsBuilder).RecordRubyGcCountDataPoint,
	"heap_allocatable_pages":                  (*metadata.MetricsBuilder).RecordRubyGcHeapAllocatablePagesDataPoint,
	"heap_allocatable_slots":                  (*metadata.MetricsBuilder).RecordRubyGcHeapAllocatableSlotsDataPoint,
	"heap_allocated_pages":                    (*metadata.MetricsBuilder).RecordRubyGcHeapAllocatedPagesDataPoint,
	"heap_available_slots":                    (*metadata.MetricsBuilder).RecordRubyGcHeapAvailableSlotsDataPoint,
	"heap_eden_pages":                         (*metadata.MetricsBuilder).RecordRubyGcHeapEdenPagesDataPoint,
	"heap_empty_pages":                        (*metadata.MetricsBuilder).RecordRubyGcHeapEmptyPagesDataPoint,
	"heap_final_slots":                        (*metadata.MetricsBuilder).RecordRubyGcHeapFinalSlotsDataPoint,
	"heap_free_slots":                         (*metadata.MetricsBuilder).RecordRubyGcHeapFreeSlotsDataPoint,
	"heap_live_slots":                         (*metadata.MetricsBuilder).RecordRubyGcHeapLiveSlotsDataPoint,
	"heap_marked_slots":                       (*metadata.MetricsBuilder).RecordRubyGcHeapMarkedSlotsDataPoint,
	"heap_sorted_length":                      (*metadata.MetricsBuilder).RecordRubyGcHeapSortedLengthDataPoint,
	"heap_swept_slots":                        (*metadata.MetricsBuilder).RecordRubyGcHeapSweptSlotsDataPoint,
	"heap_tomb_pages":                         (*metadata.MetricsBuilder).RecordRubyGcHeapTombPagesDataPoint,
	"major_gc_count":                          (*metadata.MetricsBuilder).RecordRubyGcMajorGcCountDataPoint,
	"malloc_increase_bytes":                   (*metadata.MetricsBuilder).RecordRubyGcMallocIncreaseBytesDataPoint,
	"malloc_increase_bytes_limit":             (*metadata.MetricsBuilder).RecordRubyGcMallocIncreaseBytesLimitDataPoint,
	"marking_time":                            inSeconds((*metadata.MetricsBuilder).RecordRubyGcMarkingTimeDataPoint),
	"minor_gc_count":                          (*metadata.MetricsBuilder).RecordRubyGcMinorGcCountDataPoint,
	"old_objects":                             (*metadata.MetricsBuilder).RecordRubyGcOldObjectsDataPoint,
	"old_objects_limit":                       (*metadata.MetricsBuilder).RecordRubyGcOldObjectsLimitDataPoint,
	"oldmalloc_increase_bytes":                (*metadata.MetricsBuilder).RecordRubyGcOldmallocIncreaseBytesDataPoint,
	"oldmalloc_increase_bytes_limit":          (*metadata.MetricsBuilder).RecordRubyGcOldmallocIncreaseBytesLimitDataPoint,
	"read_barrier_faults":                     (*metadata.MetricsBuilder).RecordRubyGcReadBarrierFaultsDataPoint,
	"remembered_wb_unprotected_objects":       (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsDataPoint,
	"remembered_wb_unprotected_objects_limit": (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsLimitDataPoint,
	"retained_weak_references_count":          (*metadata.MetricsBuilder).RecordRubyGcRetainedWeakReferencesCountDataPoint,
	"sweeping_time":                           inSeconds((*metadata.MetricsBuilder).RecordRubyGcSweepingTimeDataPoint),
	"time":                                    inSeconds((*metadata.MetricsBuilder).RecordRubyGcTimeDataPoint),
	"total_allocated_objects":                 (*metadata.MetricsBuilder).RecordRubyGcTotalAllocatedObjectsDataPoint,
	"total_allocated_pages":                   (*metadata.MetricsBuilder).RecordRubyGcTotalAllocatedPagesDataPoint,
	"total_freed_objects":                     (*metadata.MetricsBuilder).RecordRubyGcTotalFreedObjectsDataPoint,
	"total_freed_pages":                       (*metadata.MetricsBuilder).RecordRubyGcTotalFreedPagesDataPoint,
	"total_heap_size":                         (*metadata.MetricsBuilder).RecordRubyGcTotalHeapSizeDataPoint,
	"total_memsize":                           (*metadata.MetricsBuilder).RecordRubyGcTotalMemsizeDataPoint,
	"total_moved_objects":                     (*metadata.MetricsBuilder).RecordRubyGcTotalMovedObjectsDataPoint,
	"weak_references_count":                   (*metadata.MetricsBuilder).RecordRubyGcWeakReferencesCountDataPoint,
}

// formerKeys are the keys of Rubies before 2.2, with their current keys.
var formerKeys = map[string]string{
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
