// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// The simulator as users have it: a program.

func agentsim(t *testing.T, arguments ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), kit.AgentSim(t), append([]string{"bytefrog"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func TestTheSimulatorReplaysACapture(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c := kit.Start(t, collector(endpoint, "", ""))
	agentsim(t, "replay", "--endpoint", endpoint, "--speed", "20x", "--protocol", "2", capturePath("shop"))
	stopAfter(t, c, 1)
	checkEqual(t, reference.Spans(openCapture(t, "shop"), defaultRules), readStreams(t, c, "spans.bin").only(t))
}

// LTTng's log agents find the collector by its port file, and end after an interrupt.
func TestTheSimulatorPlaysLogAgents(t *testing.T) {
	t.Parallel()
	portFile := filepath.Join(t.TempDir(), "agent.port")
	c := kit.Start(t, switcher(testkit.Address(t), portFile, ""))
	command := exec.CommandContext(t.Context(), kit.AgentSim(t), "lttng-agent", "--port-file", portFile, "--agents", "3", "--loggers", "5")
	var output strings.Builder
	command.Stdout = &output
	require.NoError(t, command.Start())
	c.AwaitMetric(t, 3, agentsNow)
	awaitSwitched(t, c, "a logger appeared", 3*5, func(s switched) bool { return s.event == "lttng.logger.appeared" })
	c.Stop(t)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.NoError(t, command.Wait())
	assert.Contains(t, output.String(), "playing 3 agents of jul with 5 loggers each\n3 connections, ")
	assert.Contains(t, output.String(), ", 0 of them timed out\n0 requests ended an agent or its connection; 0 faults\nenabled at the end: 0\n")
}

// Generated programs have every kind of call. Their spans fit together, and each program has its
// own.
func TestGeneratedCallsFitTogether(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c := kit.Start(t, collector(endpoint, sevenConnections, "max_spans_per_trace: 500, reorder: {max_wait: 2s}"))
	agentsim(t, "load", "--endpoint", endpoint, "--agents", "3", "--events", "50000", "--threads", "8", "--depth", "40",
		"--exceptions", "0.05", "--markers", "0.01", "--suspends", "2", "--loss", "0.01", "--seed", "7")
	stopAfter(t, c, 3)
	got := readStreams(t, c, "spans.bin")
	require.Len(t, got, 3)
	for _, e := range got {
		checkShape(t, e)
		checkTraces(t, e, 500)
		assert.Greater(t, len(e.spans), 10_000)
		threads := map[int64]bool{}
		for _, s := range e.spans {
			threads[s.thread] = true
		}
		assert.Len(t, threads, 8)
	}
}
