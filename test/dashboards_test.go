// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// countersOfFaults have no series until there is a fault: data was lost, refused or held, or a limit was reached.
var countersOfFaults = regexp.MustCompile(`^otelcol_\w+_(\w*dropped|dropped_\w+|failed_spans|missing_numbers|late_events|handover_retries|suspends|` +
	`refused_calls|shed_streams|runs_shed|connections_evicted|requests_to_give_way|held_spans)$`)

// variables of dashboards, as a user sees all services in the time of the test.
var variables = strings.NewReplacer("$service", ".+", "$__rate_interval", "10m")

// checkDashboards compares the expressions of all dashboards with the metrics of programs and those of the collector itself:
// each has series in one of the servers.
func checkDashboards(t *testing.T, servers ...*prometheus.Server) {
	files, err := filepath.Glob("../packaging/grafana/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, expression := range expressions(t, file) {
				if !ofFaults(expression) {
					awaitSeries(t, variables.Replace(expression), servers)
				}
			}
		})
	}
}

// expressions are those of all panels of a dashboard.
func expressions(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Type    string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, panel := range dashboard.Panels {
		if panel.Type == "row" {
			continue
		}
		require.NotEmpty(t, panel.Targets)
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	require.NotEmpty(t, all)
	return all
}

var ownMetrics = regexp.MustCompile(`\botelcol_\w+`)

// ofFaults is true if an expression has only the collector's counters of faults.
func ofFaults(expression string) bool {
	names := ownMetrics.FindAllString(expression, -1)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !countersOfFaults.MatchString(name) })
}

// awaitSeries waits until an expression has series in one of the servers.
func awaitSeries(t *testing.T, expression string, servers []*prometheus.Server) {
	t.Helper()
	testkit.Eventually(t, expression+" has series", func() (bool, string) {
		var state []string
		for _, server := range servers {
			n, err := server.Series(expression)
			if n > 0 {
				return true, ""
			}
			state = append(state, fmt.Sprintf("%d series, %v", n, err))
		}
		return false, strings.Join(state, "; ")
	})
}

// Prometheus' own tool reads the alert rules. It tests them with played series, the first increment of a counter included.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	tool := prometheus.Tool(t)
	for name, arguments := range map[string][]string{
		"they are valid":                         {"check", "rules", "../packaging/prometheus/alerts.yaml"},
		"they fire, and are silent, as expected": {"test", "rules", "testdata/alerts.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := exec.CommandContext(t.Context(), tool, arguments...).CombinedOutput()
			assert.NoError(t, err, "%s", output)
		})
	}
}
