// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

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

// inSeconds records a statistic of milliseconds as seconds, the unit of durations.
func inSeconds(record func(*metadata.MetricsBuilder, pcommon.Timestamp, float64)) func(*metadata.MetricsBuilder, pcommon.Timestamp, int64) {
	return func(b *metadata.MetricsBuilder, at pcommon.Timestamp, milliseconds int64) {
		record(b, at, float64(milliseconds)/1000)
	}
}

// unmeasuredKeys returns the keys of statistics without a metric of their own, sorted.
func unmeasuredKeys(of process.Stats) (keys []string) {
	for key := range of {
		if _, ok := statMetrics[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
