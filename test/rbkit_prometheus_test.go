// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// The numbers of captures for users of Prometheus. The expected ones are from the JSON of a
// reference, if it has them, and otherwise from receiver/rbkitreceiver/testdata/golden/README.md.

// rbkitStatistics are the metrics of GC.stat, by its keys. The unit is in the name, and sums end in
// _total.
var rbkitStatistics = map[string]struct{ metric, kind string }{
	"count":                                   {"ruby_gc_count_total", "counter"},
	"minor_gc_count":                          {"ruby_gc_minor_gc_count_total", "counter"},
	"major_gc_count":                          {"ruby_gc_major_gc_count_total", "counter"},
	"heap_allocated_pages":                    {"ruby_gc_heap_allocated_pages", "gauge"},
	"heap_eden_pages":                         {"ruby_gc_heap_eden_pages", "gauge"},
	"heap_tomb_pages":                         {"ruby_gc_heap_tomb_pages", "gauge"},
	"heap_allocatable_pages":                  {"ruby_gc_heap_allocatable_pages", "gauge"},
	"heap_sorted_length":                      {"ruby_gc_heap_sorted_length", "gauge"},
	"heap_live_slots":                         {"ruby_gc_heap_live_slots", "gauge"},
	"heap_free_slots":                         {"ruby_gc_heap_free_slots", "gauge"},
	"heap_final_slots":                        {"ruby_gc_heap_final_slots", "gauge"},
	"old_objects":                             {"ruby_gc_old_objects", "gauge"},
	"old_objects_limit":                       {"ruby_gc_old_objects_limit", "gauge"},
	"total_allocated_objects":                 {"ruby_gc_allocated_objects_total", "counter"},
	"total_freed_objects":                     {"ruby_gc_freed_objects_total", "counter"},
	"malloc_increase_bytes":                   {"ruby_gc_malloc_increase_bytes", "gauge"},
	"malloc_increase_bytes_limit":             {"ruby_gc_malloc_increase_bytes_limit", "gauge"},
	"oldmalloc_increase_bytes":                {"ruby_gc_oldmalloc_increase_bytes", "gauge"},
	"oldmalloc_increase_bytes_limit":          {"ruby_gc_oldmalloc_increase_bytes_limit", "gauge"},
	"remembered_wb_unprotected_objects":       {"ruby_gc_remembered_wb_unprotected_objects", "gauge"},
	"remembered_wb_unprotected_objects_limit": {"ruby_gc_remembered_wb_unprotected_objects_limit", "gauge"},
	"total_heap_size":                         {"ruby_gc_total_heap_size_bytes", "gauge"},
	"total_memsize":                           {"ruby_gc_total_memsize_bytes", "gauge"},
}

// rbkitMetrics are all others, and their types.
var rbkitMetrics = map[string]string{
	"rbkit_messages_total": "counter", "rbkit_messages_lost_total": "counter", "rbkit_events_total": "counter",
	"rbkit_cpu_samples_total": "counter", "rbkit_network_io_bytes_total": "counter",
	"ruby_allocation_count_total": "counter", "ruby_allocation_size_bytes_total": "counter",
	"ruby_gc_mark_phase_duration_seconds": "histogram", "ruby_gc_cycle_duration_seconds": "histogram",
	"ruby_heap_live_objects": "gauge", "ruby_heap_live_size_bytes": "gauge",
	"ruby_object_created_total": "counter", "ruby_object_destroyed_total": "counter", "ruby_object_tracked": "gauge",
}

func TestPrometheusHasTheNumbersOfRbkitCaptures(t *testing.T) {
	t.Parallel()
	released, documented := newRbkitServer(t), newRbkitServer(t)
	c := kit.Start(t, rbkitClient{servers: []rbkitServer{released, documented}}.config())
	p := prometheus.Start(t, released.metrics)
	released.play(t, "replay", rbkitCapture("released-30s"))
	documented.play(t, "replay", rbkitCapture("documented-30s"))

	for _, test := range []struct {
		of                           rbkitServer
		capture                      string
		stats, dump, sample          uint64 // types of events
		created, destroyed, tracked  float64
		marking, cycles              []float64 // in ms
		dumped, allocated, allocSize float64
	}{
		{
			of: released, capture: "released-30s", stats: 6, dump: 5, sample: 9,
			created: 45_662, destroyed: 38_849, tracked: 8_711,
			marking: []float64{2, 2, 0, 0, 3}, cycles: []float64{71, 2, 914, 4869, 7},
			dumped: 3_666_604,
		},
		{
			of: documented, capture: "documented-30s", stats: 5, dump: 4, sample: 8,
			marking: []float64{1, 3, 3, 1, 0, 0, 0}, cycles: []float64{1, 3, 3, 2, 11, 2, 3},
			dumped: 3_679_211, allocated: 56_274, allocSize: 2_247_480,
		},
	} {
		t.Run(test.capture, func(t *testing.T) {
			played := openRbkit(t, test.capture)
			here := fmt.Sprintf("{instance=%q}", rbkitInstance(t, test.of.publish))
			all, byType := eventsOf(played.Messages...)
			for expression, want := range map[string]float64{
				"rbkit_messages_total" + here:                       float64(len(played.Messages)),
				"rbkit_messages_lost_total" + here:                  0,
				"rbkit_events_total" + here:                         all,
				"rbkit_cpu_samples_total" + here:                    byType[test.sample],
				"sum(ruby_heap_live_size_bytes" + here + ")":        test.dumped,
				"sum(ruby_object_created_total" + here + ")":        test.created,
				"sum(ruby_object_destroyed_total" + here + ")":      test.destroyed,
				"ruby_object_tracked" + here:                        test.tracked,
				"sum(ruby_allocation_count_total" + here + ")":      test.allocated,
				"sum(ruby_allocation_size_bytes_total" + here + ")": test.allocSize,
			} {
				if want > 0 || strings.HasPrefix(expression, "rbkit") {
					p.Await(t, expression, want)
				} else {
					p.Await(t, "count("+expression+") or vector(0)", 0) // the dialect doesn't have it
				}
			}
			checkHistogram(t, p, "ruby_gc_mark_phase_duration_seconds", here, test.marking)
			checkHistogram(t, p, "ruby_gc_cycle_duration_seconds", here, test.cycles)
			stats := statisticsOf(t, played, test.stats)
			assert.Len(t, stats, len(rbkitStatistics))
			for key, value := range stats {
				p.Await(t, rbkitStatistics[key].metric+here, value)
			}
			p.AwaitByLabel(t, "ruby_heap_live_objects"+here, "ruby_class", classesOf(t, played, test.dump))
			if test.allocated > 0 {
				p.AwaitByLabel(t, "sum by (code_file_path) (ruby_allocation_count_total"+here+")", "code_file_path", allocationsOf(t, played))
			}
		})
	}
	checkTypes(t, p)
	c.Stop(t)
}

// checkHistogram checks a histogram of durations, in milliseconds.
func checkHistogram(t *testing.T, p *prometheus.Server, name, of string, durations []float64) {
	t.Helper()
	p.Await(t, name+"_count"+of, float64(len(durations)))
	sum := 0.0
	for _, d := range durations {
		sum += d
	}
	p.Await(t, "round("+name+"_sum"+of+" * 1000)", sum)
	buckets := p.ByLabel(t, name+"_bucket"+of, "le")
	assert.Len(t, buckets, 16)
	for bound := range buckets {
		least, err := strconv.ParseFloat(bound, 64)
		require.NoError(t, err)
		within := 0
		for _, d := range durations {
			if d <= 1000*least {
				within++
			}
		}
		buckets[bound] = float64(within)
	}
	p.AwaitByLabel(t, name+"_bucket"+of, "le", buckets)
}

// checkTypes checks the metadata of all metrics, and that there are no others.
func checkTypes(t *testing.T, p *prometheus.Server) {
	t.Helper()
	want := maps.Clone(rbkitMetrics)
	for _, s := range rbkitStatistics {
		want[s.metric] = s.kind
	}
	want["target_info"] = "gauge" // the exporter's, of resources
	got := map[string]string{}
	for name, m := range p.Metadata(t) {
		got[name] = m.Type
		assert.NotEmpty(t, m.Help, name)
	}
	assert.Equal(t, want, got)
}

// eachDecoded calls f with the events of a type in a message, as the reference decoded
// them. Captures have that of their first messages, samples that of some others.
func eachDecoded[Payload any](t *testing.T, m capture.Message, eventType uint64, f func(Payload)) {
	t.Helper()
	if m.Decoded == nil {
		samples := openRbkit(t, "samples").Messages
		at := slices.IndexFunc(samples, func(s capture.Message) bool { return bytes.Equal(s.Data, m.Data) })
		require.GreaterOrEqual(t, at, 0, "expected a sample of message %s", m.Name)
		m = samples[at]
	}
	var message struct {
		Events []struct {
			Type    uint64          `json:"0"`
			Payload json.RawMessage `json:"2"`
		} `json:"2"`
	}
	require.NoError(t, json.Unmarshal(m.Decoded, &message), m.Name)
	for _, e := range message.Events {
		if e.Type == eventType {
			var payload Payload
			require.NoError(t, json.Unmarshal(e.Payload, &payload), m.Name)
			f(payload)
		}
	}
}

// with are the messages that have events of a type.
func with(eventType uint64, messages []capture.Message) []capture.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m capture.Message) bool { return m.Events[eventType] == 0 })
}

// statisticsOf returns the last statistics of a capture that are numbers.
func statisticsOf(t *testing.T, of *capture.Capture, eventType uint64) map[string]float64 {
	t.Helper()
	messages := with(eventType, of.Messages)
	numbers := map[string]float64{}
	eachDecoded(t, messages[len(messages)-1], eventType, func(stats map[string]any) {
		clear(numbers)
		for key, value := range stats {
			if n, is := value.(float64); is {
				numbers[key] = n
			}
		}
	})
	return numbers
}

// anonymous is the address in the name of a class that has no other.
var anonymous = regexp.MustCompile(`:0x[0-9a-f]+`)

// classesOf are the objects of the dump of a capture, by class.
func classesOf(t *testing.T, of *capture.Capture, eventType uint64) map[string]float64 {
	t.Helper()
	classes := map[string]float64{}
	for _, m := range with(eventType, of.Messages) {
		eachDecoded(t, m, eventType, func(part []struct {
			Class *string `json:"4"`
		},
		) {
			for _, object := range part {
				class := "hidden"
				if object.Class != nil {
					class = anonymous.ReplaceAllString(*object.Class, "")
				}
				classes[class]++
			}
		})
	}
	return classes
}

// snapshotType is the type of snapshots of allocations, which the documented dialect has.
const snapshotType = 0

// decodedSnapshot is a snapshot as the reference decoded it: files, and their places of the form
// "LINE CLASS SIZE".
type decodedSnapshot struct {
	Allocations map[string]map[string]struct {
		Count int64 `json:"17"`
	} `json:"18"`
}

// allocationsOf are the allocations of a capture of the documented dialect, by file.
func allocationsOf(t *testing.T, of *capture.Capture) map[string]float64 {
	t.Helper()
	files := map[string]float64{}
	for _, m := range with(snapshotType, of.Messages) {
		eachDecoded(t, m, snapshotType, func(s decodedSnapshot) {
			for file, places := range s.Allocations {
				for _, place := range places {
					files[file] += float64(place.Count)
				}
			}
		})
	}
	return files
}

// rbkitInstance is the instance of a server that is reached over loopback.
func rbkitInstance(t *testing.T, publish string) string {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(publish)
	require.NoError(t, err)
	return net.JoinHostPort(host, port)
}
