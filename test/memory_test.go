// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Ten times the events take as much memory as once. What the collector holds is
// to be seen, not how long its garbage waits: where other processes keep it
// waiting, it is measured again.
func TestMemoryDoesNotGrowWithTheEvents(t *testing.T) {
	const tries, most = 3, 1.2
	var ratio float64
	for try := 0; try == 0 || ratio > most && try < tries; try++ {
		once, tenTimes := peakMemory(t, 1), peakMemory(t, 10)
		t.Logf("peak memory: %d MiB for 0.9 million events, %d MiB for 8.9 million", once>>20, tenTimes>>20)
		ratio = float64(tenTimes) / float64(once)
	}
	assert.LessOrEqual(t, ratio, most)
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
