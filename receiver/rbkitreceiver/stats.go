// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// stats are the last statistics of the garbage collector, by their keys.
type stats map[string]int64

// maxStats is how many keys are kept that servers may choose.
const maxStats = 256

// set keeps the statistics that are numbers. What a server no longer sends, or sends as
// something else, is no longer known.
func (s stats) set(all rbkit.Stats) {
	clear(s)
	for key, number := range all.All() {
		if value, whole := wholeNumber(number); whole && len(s) < maxStats {
			s[validText(key)] = value
		}
	}
}

// growing are statistics that never fall while a process lives.
var growing = [...]string{"count", "total_allocated_objects", "total_allocated_object"}

// fell reports whether these can't be statistics of the process that the last ones are of.
func (s stats) fell(now rbkit.Stats) bool {
	for key, number := range now.All() {
		if !slices.Contains(growing[:], string(key)) {
			continue
		}
		before, known := s[string(key)]
		if value, whole := wholeNumber(number); known && whole && value < before {
			return true
		}
	}
	return false
}

// maxExact is beyond what a float can say exactly.
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

// record makes metrics of the statistics. Those without a metric of their own go by their
// keys.
func (s stats) record(b *metadata.MetricsBuilder, now pcommon.Timestamp) {
	for key, value := range s {
		if record, ok := statMetrics[key]; ok {
			record(b, now, value)
		} else {
			b.RecordRubyGcOtherDataPoint(now, value, key)
		}
	}
}

// statMetrics are the metrics of statistics by the keys of GC.stat, and of
// ObjectSpace.memsize_of_all and the size of the heap, which servers add. Where Rubies
// before 2.2 have other keys for the same, they have the same metric.
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
	"marking_time":                            (*metadata.MetricsBuilder).RecordRubyGcMarkingTimeDataPoint,
	"minor_gc_count":                          (*metadata.MetricsBuilder).RecordRubyGcMinorGcCountDataPoint,
	"old_objects":                             (*metadata.MetricsBuilder).RecordRubyGcOldObjectsDataPoint,
	"old_objects_limit":                       (*metadata.MetricsBuilder).RecordRubyGcOldObjectsLimitDataPoint,
	"oldmalloc_increase_bytes":                (*metadata.MetricsBuilder).RecordRubyGcOldmallocIncreaseBytesDataPoint,
	"oldmalloc_increase_bytes_limit":          (*metadata.MetricsBuilder).RecordRubyGcOldmallocIncreaseBytesLimitDataPoint,
	"read_barrier_faults":                     (*metadata.MetricsBuilder).RecordRubyGcReadBarrierFaultsDataPoint,
	"remembered_wb_unprotected_objects":       (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsDataPoint,
	"remembered_wb_unprotected_objects_limit": (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsLimitDataPoint,
	"retained_weak_references_count":          (*metadata.MetricsBuilder).RecordRubyGcRetainedWeakReferencesCountDataPoint,
	"sweeping_time":                           (*metadata.MetricsBuilder).RecordRubyGcSweepingTimeDataPoint,
	"time":                                    (*metadata.MetricsBuilder).RecordRubyGcTimeDataPoint,
	"total_allocated_objects":                 (*metadata.MetricsBuilder).RecordRubyGcTotalAllocatedObjectsDataPoint,
	"total_allocated_pages":                   (*metadata.MetricsBuilder).RecordRubyGcTotalAllocatedPagesDataPoint,
	"total_freed_objects":                     (*metadata.MetricsBuilder).RecordRubyGcTotalFreedObjectsDataPoint,
	"total_freed_pages":                       (*metadata.MetricsBuilder).RecordRubyGcTotalFreedPagesDataPoint,
	"total_heap_size":                         (*metadata.MetricsBuilder).RecordRubyGcTotalHeapSizeDataPoint,
	"total_memsize":                           (*metadata.MetricsBuilder).RecordRubyGcTotalMemsizeDataPoint,
	"total_moved_objects":                     (*metadata.MetricsBuilder).RecordRubyGcTotalMovedObjectsDataPoint,
	"weak_references_count":                   (*metadata.MetricsBuilder).RecordRubyGcWeakReferencesCountDataPoint,

	"heap_increment":                 (*metadata.MetricsBuilder).RecordRubyGcHeapAllocatablePagesDataPoint,
	"heap_used":                      (*metadata.MetricsBuilder).RecordRubyGcHeapAllocatedPagesDataPoint,
	"heap_eden_page_length":          (*metadata.MetricsBuilder).RecordRubyGcHeapEdenPagesDataPoint,
	"heap_final_slot":                (*metadata.MetricsBuilder).RecordRubyGcHeapFinalSlotsDataPoint,
	"heap_final_num":                 (*metadata.MetricsBuilder).RecordRubyGcHeapFinalSlotsDataPoint,
	"heap_free_slot":                 (*metadata.MetricsBuilder).RecordRubyGcHeapFreeSlotsDataPoint,
	"heap_free_num":                  (*metadata.MetricsBuilder).RecordRubyGcHeapFreeSlotsDataPoint,
	"heap_live_slot":                 (*metadata.MetricsBuilder).RecordRubyGcHeapLiveSlotsDataPoint,
	"heap_live_num":                  (*metadata.MetricsBuilder).RecordRubyGcHeapLiveSlotsDataPoint,
	"heap_length":                    (*metadata.MetricsBuilder).RecordRubyGcHeapSortedLengthDataPoint,
	"heap_swept_slot":                (*metadata.MetricsBuilder).RecordRubyGcHeapSweptSlotsDataPoint,
	"heap_tomb_page_length":          (*metadata.MetricsBuilder).RecordRubyGcHeapTombPagesDataPoint,
	"malloc_increase":                (*metadata.MetricsBuilder).RecordRubyGcMallocIncreaseBytesDataPoint,
	"malloc_limit":                   (*metadata.MetricsBuilder).RecordRubyGcMallocIncreaseBytesLimitDataPoint,
	"old_object":                     (*metadata.MetricsBuilder).RecordRubyGcOldObjectsDataPoint,
	"old_object_limit":               (*metadata.MetricsBuilder).RecordRubyGcOldObjectsLimitDataPoint,
	"oldmalloc_increase":             (*metadata.MetricsBuilder).RecordRubyGcOldmallocIncreaseBytesDataPoint,
	"oldmalloc_limit":                (*metadata.MetricsBuilder).RecordRubyGcOldmallocIncreaseBytesLimitDataPoint,
	"remembered_shady_object":        (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsDataPoint,
	"remembered_shady_objects":       (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsDataPoint,
	"remembered_shady_object_limit":  (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsLimitDataPoint,
	"remembered_shady_objects_limit": (*metadata.MetricsBuilder).RecordRubyGcRememberedWbUnprotectedObjectsLimitDataPoint,
	"total_allocated_object":         (*metadata.MetricsBuilder).RecordRubyGcTotalAllocatedObjectsDataPoint,
	"total_freed_object":             (*metadata.MetricsBuilder).RecordRubyGcTotalFreedObjectsDataPoint,
}
