// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// Files of spans, after failures of the disk and of the process that writes them.

// Metrics of otlp_json_file.
const (
	linesWritten  = "otelcol_exporter_otlp_json_file_lines"
	linesRefused  = "otelcol_exporter_otlp_json_file_refused_lines"
	bytesRepaired = "otelcol_exporter_otlp_json_file_repaired_bytes"
)

// toFiles configures a collector that writes spans to files of a path, of so many MiB.
func toFiles(endpoint, path string, megabytes int) string {
	return pipeline(endpoint, "agent: {data_connections: 2}", "",
		fmt.Sprintf("otlp_json_file: {path: %q, rotation: {max_megabytes: %d, max_backups: 1000}}", path, megabytes))
}

// eachTracesLine calls f with each line of all files of a directory, which have to be whole.
func eachTracesLine(t testing.TB, directory string, f func(ptrace.Traces)) (lines int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "spans*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, len(text) == 0 || bytes.HasSuffix(text, []byte("\n")), "%s ends with a torn line", file)
		for line := range bytes.Lines(text) {
			traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(line)
			require.NoError(t, err, "%s: %.200s", file, line)
			f(traces)
			lines++
		}
	}
	return lines
}

func TestFilesHaveWholeLinesAfterKills(t *testing.T) {
	t.Parallel()
	const kills = 10
	directory := t.TempDir()
	path := filepath.Join(directory, "spans.json")
	written, torn := 0.0, 0
	for n := range kills {
		endpoint := testkit.Address(t)
		c := kit.Start(t, toFiles(endpoint, path, 4))
		load := exec.CommandContext(t.Context(), kit.AgentSim(t), "bytefrog", "load", "--endpoint", endpoint, "--threads", "8", "--seed", fmt.Sprint(n))
		require.NoError(t, load.Start())
		c.AwaitMetric(t, float64(2+n), linesWritten)
		written += c.Metric(t, linesWritten)
		c.Kill()
		require.NoError(t, load.Process.Kill())
		_ = load.Wait() // it was killed
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if n == 0 && bytes.HasSuffix(text, []byte("\n")) { // one is torn in any case
			require.NoError(t, os.Truncate(path, int64(len(text)-2)))
			written--
			torn++
		} else if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			torn++
		}
	}
	c := kit.Start(t, toFiles(testkit.Address(t), path, 4))
	c.Stop(t)
	type spanID struct {
		trace pcommon.TraceID
		id    pcommon.SpanID
	}
	spans := map[spanID]bool{}
	lines := eachTracesLine(t, directory, func(traces ptrace.Traces) {
		for _, rs := range traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					id := spanID{span.TraceID(), span.SpanID()}
					if spans[id] {
						t.Errorf("span %v is there twice", id)
					}
					spans[id] = true
				}
			}
		}
	})
	t.Logf("%d kills left %d torn lines; %d lines are whole, with %d spans", kills, torn, lines, len(spans))
	assert.GreaterOrEqual(t, float64(lines), written, "no line is gone that was counted as written")
}

func TestFilesHaveEachSpanOnceAfterAFullDisk(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	if output, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", directory).CombinedOutput(); err != nil {
		t.Skipf("only root can mount a small disk: %s", output)
	}
	t.Cleanup(func() {
		output, err := exec.Command("umount", directory).CombinedOutput()
		assert.NoError(t, err, "%s", output)
	})
	endpoint := testkit.Address(t)
	c := kit.Start(t, toFiles(endpoint, filepath.Join(directory, "spans.json"), 4))
	a, results := agent{endpoint: endpoint, capture: mavenBegin}.start(t.Context(), t)
	c.AwaitMetric(t, 3, linesRefused)
	awaitStandstill(t, a)
	output, err := exec.Command("mount", "-o", "remount,size=1g", directory).CombinedOutput()
	require.NoError(t, err, "%s", output)
	await(t, results)
	stopAfter(t, c, 1)
	got := streams{}
	lines := eachTracesLine(t, directory, func(traces ptrace.Traces) { got.add(t, traces) })
	t.Logf("%d lines", lines)
	checkEqual(t, reference.Spans(openCapture(t, mavenBegin), defaultRules), got.only(t))
	assert.Equal(t, 1, strings.Count(c.Log(), "Refused data"), "a burst is logged once")
}
