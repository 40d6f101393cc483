// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
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
			"endpoint: localhost:4317": testkit.Address(t), "endpoint: localhost:8889": testkit.Address(t), "endpoint: localhost:4040": testkit.Address(t),
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

// A collector is killed while it writes, again and again. The next start cuts a torn chunk off, so all files are whole, and
// each has the spans that were counted as written.
func TestPerfettoFilesAreWholeAfterKillsUnderLoad(t *testing.T) {
	t.Parallel()
	const kills = 5
	directory := t.TempDir()
	path := filepath.Join(directory, "spans.perfetto-trace")
	start := func() (c *kit.Collector, endpoint string) {
		endpoint = testkit.Address(t)
		return kit.Start(t, pipeline(endpoint, "agent: {data_connections: 2}", "", fmt.Sprintf("perfetto: {path: %q, flush_interval: 10ms}", path))), endpoint
	}
	written := 0.0
	for n := range kills {
		c, endpoint := start()
		load := exec.CommandContext(t.Context(), kit.AgentSim(t), "bytefrog", "load", "--endpoint", endpoint, "--threads", "8", "--seed", fmt.Sprint(n))
		require.NoError(t, load.Start())
		c.AwaitMetric(t, float64(10_000+1000*n), "otelcol_exporter_perfetto_slices")
		written += c.Metric(t, "otelcol_exporter_perfetto_slices")
		c.Kill()
		require.NoError(t, load.Process.Kill())
		_ = load.Wait() // it was killed
	}
	c, _ := start()
	c.Stop(t)
	files, err := filepath.Glob(filepath.Join(directory, "spans*.perfetto-trace"))
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		read, err := perfettofile.Open(file)
		require.NoError(t, err)
		for _, s := range read.Slices {
			require.False(t, s.Open)
			if !s.Instant {
				found++
			}
		}
	}
	assert.Len(t, files, kills+1, "one for each kill, and the empty one of the last start")
	assert.GreaterOrEqual(t, float64(found), written)
}
