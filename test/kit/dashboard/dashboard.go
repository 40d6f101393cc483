// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboard runs the expressions of the shipped dashboards of Grafana against a real Prometheus. It draws nothing.
package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// variables of dashboards, as a user sees all services in the time of the test.
var variables = strings.NewReplacer("$service", ".+", "$__rate_interval", "10m")

// Check waits until each expression of all dashboards in a folder has series in one of the servers. Expressions of faults have none.
func Check(t *testing.T, folder string, servers ...*prometheus.Server) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			CheckFile(t, file, func(string) bool { return true }, servers...)
		})
	}
}

// CheckFile is Check for one dashboard, and for its expressions with data.
func CheckFile(t *testing.T, file string, hasData func(expression string) bool, servers ...*prometheus.Server) {
	t.Helper()
	for _, expression := range Expressions(t, file) {
		if !ofFaults(expression) && hasData(expression) {
			awaitSeries(t, variables.Replace(expression), servers)
		}
	}
}

// Expressions are those of all panels of a dashboard.
func Expressions(t testing.TB, file string) (all []string) {
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

// countersOfFaults have no series until there is a fault: data was lost, refused or held, or a limit was reached.
var countersOfFaults = regexp.MustCompile(`^otelcol_\w+_(\w*dropped|dropped_\w+|failed_spans|missing_numbers|late_events|handover_retries|suspends|` +
	`refused_calls|shed_streams|runs_shed|connections_evicted|requests_to_give_way|held_spans)$`)

var ownMetrics = regexp.MustCompile(`\botelcol_\w+`)

// ofFaults is true if an expression has only the collector's counters of faults.
func ofFaults(expression string) bool {
	names := ownMetrics.FindAllString(expression, -1)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !countersOfFaults.MatchString(name) })
}

// awaitSeries waits until an expression has series in one of the servers.
func awaitSeries(t testing.TB, expression string, servers []*prometheus.Server) {
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
