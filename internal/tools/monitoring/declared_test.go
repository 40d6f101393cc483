// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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
