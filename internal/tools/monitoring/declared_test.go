// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/componentkit/losses"
)

// declared are the attributes of the metrics that components report about themselves, by the names of the metrics in Prometheus.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../../../*/*/metadata.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string][]string{}
	for _, file := range files {
		var metadata struct {
			Attributes map[string]struct {
				Name string `yaml:"name_override"`
			}
			Telemetry struct {
				Metrics map[string]struct{ Attributes []string }
			}
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &metadata), file)
		for name, metric := range metadata.Telemetry.Metrics {
			for i, attribute := range metric.Attributes {
				metric.Attributes[i] = cmp.Or(metadata.Attributes[attribute].Name, attribute)
			}
			all["otelcol_"+name] = metric.Attributes
		}
	}
	return all
}

// ofTheCollector are metrics of the Collector's own exporters, and of its process.
var ofTheCollector = []string{"otelcol_exporter_sent_spans", "otelcol_exporter_send_failed_spans", "otelcol_exporter_enqueue_failed_spans",
	"otelcol_exporter_queue_size", "otelcol_exporter_queue_capacity", "otelcol_process_memory_rss", "otelcol_process_cpu_seconds"}

var ownMetrics = regexp.MustCompile(`otelcol_[a-z_]+`)

func TestEachMetricOfTheCollectorIsDeclared(t *testing.T) {
	all := declared(t)
	check := func(expression string) {
		for _, name := range ownMetrics.FindAllString(expression, -1) {
			_, known := all[strings.TrimSuffix(name, "_bucket")]
			assert.True(t, known || slices.Contains(ofTheCollector, name), "no metadata declares %s in %s", name, expression)
		}
	}
	for _, b := range boards {
		for _, r := range b.rows {
			for _, p := range r.panels {
				for _, q := range p.queries {
					check(q.expression)
				}
			}
		}
	}
	for _, g := range allRules().Groups {
		for _, r := range g.Rules {
			check(r.Expr)
		}
	}
}

func TestEachCounterHasItsLabel(t *testing.T) {
	all := declared(t)
	for _, c := range slices.Concat(losses.Dropped, losses.Lost, losses.Limited) {
		if !slices.Contains(ofTheCollector, c.Metric) {
			assert.Contains(t, all[c.Metric], c.Label, c.Metric)
		}
	}
}

// lossNames match the names of counters of losses.
var lossNames = regexp.MustCompile(`_(dropped|lost|losses|missing|discarded|evicted|connections_closed|shed)(_|$)`)

// noLosses are counters that are not in the package losses, by the end of their names, and why not.
var noLosses = map[string]string{
	"_batches_dropped":          "the counter of dropped call events has the events of these batches",
	"_metric_points_dropped":    "the next points have the values of these",
	"_dropped_points":           "the next points have the values of these",
	"_bytes_discarded":          "the run has ended, and a counter of losses has its reason",
	"_port_files_lost":          "the receiver writes the file again",
	"_connections_closed":       "browsers and operators connect again",
	"_dropped_attributes":       "the span has all of its other data, and their number",
	"_dropped_exceptions":       "the span has all of its other data, and their number",
	"_dropped_renames":          "calls without the name of their thread are complete otherwise",
	"_dropped_kept_spans":       "the call trees have these spans",
	"_dropped_traces":           "the call trees have these spans",
	"_dropped_windows":          "the call trees have the data of these windows",
	"exporter_flame_graph_shed": "the counter of the memory budget has these requests",
}

func TestEachCounterOfLossesIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, c := range slices.Concat(losses.Dropped, losses.Lost, losses.Limited) {
		assert.False(t, listed[c.Metric], "losses lists %s twice", c.Metric)
		listed[c.Metric] = true
	}
	used := map[string]bool{}
	for _, metric := range slices.Sorted(maps.Keys(declared(t))) {
		if !lossNames.MatchString(metric) {
			continue
		}
		exception := ""
		for end := range noLosses {
			if strings.HasSuffix(metric, end) {
				exception, used[end] = end, true
			}
		}
		assert.NotEqual(t, listed[metric], exception != "", "%s must be either in internal/componentkit/losses or, with a reason, in noLosses", metric)
	}
	for end := range noLosses {
		assert.True(t, used[end], "no metadata declares a counter %s", end)
	}
}

func TestQueriesAreNamedAsInGrafana(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 27: "AB", 52: "BA", 702: "AAA"} {
		assert.Equal(t, want, refID(i))
	}
}

// Each alert leads to a chapter of the page.
func TestEachAlertHasAChapter(t *testing.T) {
	page, err := os.ReadFile("../../../docs/watch.md")
	require.NoError(t, err)
	for _, g := range allRules().Groups {
		for _, r := range g.Rules {
			assert.Contains(t, string(page), "\n### "+r.Alert+"\n")
		}
	}
}
