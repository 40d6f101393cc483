// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// config/perfetto.yaml as it is shipped: a killed collector leaves a whole file of all calls, and the next one begins
// a new file.
func TestPerfettoFilesHaveAllCallsAfterAKill(t *testing.T) {
	t.Parallel()
	run, err := reference.Open(capturePath("shop"))
	require.NoError(t, err)
	want := map[string]int{}
	for _, span := range reference.Spans(run, reference.Rules{End: "ended"}).Spans {
		want[reference.Qualified(span.Function)]++
	}
	data := t.TempDir()
	path := filepath.Join(data, "perfetto", "spans.perfetto-trace")
	start := func(agents string) *kit.Collector {
		return kit.Start(t, shipped(t, "perfetto.yaml", map[string]string{
			"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:8765": agents,
			"endpoint: localhost:4317": testkit.Address(t), "endpoint: localhost:8889": testkit.Address(t),
		}), "CALLBRAID_DATA="+data)
	}
	agents := testkit.Address(t)
	c := start(agents)
	agentsim(t, "replay", "--endpoint", agents, capturePath("shop"))
	calls := 0
	for _, n := range want {
		calls += n
	}
	c.AwaitMetric(t, float64(calls), "otelcol_exporter_perfetto_slices")
	c.Kill()

	read, err := perfettofile.Open(path)
	require.NoError(t, err)
	got := map[string]int{}
	for _, s := range read.Slices {
		if !s.Instant {
			require.False(t, s.Open)
			got[s.Args["source.function_name"].(string)]++
		}
	}
	assert.Equal(t, want, got)

	// A write that the kill tore.
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content[:len(content)-1], 0o600))
	c = start(testkit.Address(t))
	c.Stop(t)
	assert.Contains(t, c.Log(), "Cut a torn chunk off the end of the file")
	backups, err := filepath.Glob(filepath.Join(data, "perfetto", "spans-*.perfetto-trace"))
	require.NoError(t, err)
	require.Len(t, backups, 1)
	_, err = perfettofile.Open(backups[0])
	require.NoError(t, err)
}
