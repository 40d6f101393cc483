// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Five times the events need as much memory as once. A busy machine delays the collection of
// garbage, which is memory too, so the median of three runs counts: two of them decide. Both peaks are of one process, because
// processes differ by more.
func TestMemoryDoesNotGrowWithTheEvents(t *testing.T) {
	const more, most, decide = 5, 1.3, 2
	within, beyond := 0, 0
	for within < decide && beyond < decide {
		once, often := peakMemories(t, more)
		t.Logf("peak memory in MiB: %d for 0.9 million events, %d for 4.4 million", once>>20, often>>20)
		if float64(often)/float64(once) <= most {
			within++
		} else {
			beyond++
		}
	}
	assert.Equal(t, decide, within, "runs of at most three whose memory grows at most by the factor %v", most)
}

// peakMemories returns the peak memory of a collector after the events of a capture, and after those of some rounds of it.
func peakMemories(t *testing.T, rounds int) (once, often uint64) {
	t.Helper()
	endpoint := testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "", "", "nop: {}"), "GOGC=25")
	_, results := agent{endpoint: endpoint, capture: "maven", replay: replay.Options{Repeat: rounds}}.start(t.Context(), t)
	c.AwaitMetric(t, mavenEvents, eventsTaken)
	once = c.PeakMemory(t)
	require.Equal(t, bytefrogagent.Completed, await(t, results).Outcome)
	c.AwaitMetric(t, 1, runsEnded)
	often = c.PeakMemory(t)
	assert.EqualValues(t, rounds*mavenEvents, c.Metric(t, eventsTaken))
	c.Stop(t)
	return once, often
}
