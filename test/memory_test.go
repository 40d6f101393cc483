// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Five times the events need as much memory as once. A busy machine delays the collection of
// garbage, which is memory too, so medians of some runs are compared.
func TestMemoryDoesNotGrowWithTheEvents(t *testing.T) {
	const runs, more, most = 5, 5, 1.2
	var once, often []uint64
	for range runs {
		once = append(once, peakMemory(t, 1))
		often = append(often, peakMemory(t, more))
	}
	slices.Sort(once)
	slices.Sort(often)
	t.Logf("peak memory in MiB: %d for 0.9 million events, %d for 4.4 million", once[runs/2]>>20, often[runs/2]>>20)
	assert.LessOrEqual(t, float64(often[runs/2])/float64(once[runs/2]), most)
}

func peakMemory(t *testing.T, repeat int) uint64 {
	t.Helper()
	endpoint := testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "", "", "nop: {}"), "GOGC=10")
	agent{endpoint: endpoint, capture: "maven", replay: replay.Options{Repeat: repeat}}.complete(t)
	c.AwaitMetric(t, 1, runsEnded)
	peak := c.PeakMemory(t)
	assert.EqualValues(t, repeat*887_366, c.Metric(t, eventsTaken))
	c.Stop(t)
	return peak
}
