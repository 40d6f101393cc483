// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Five times the events need as much memory as once: after a collection of garbage, while the agent stands still and all events that
// it has sent are paired. The first time, the collector knows all names. The limit allows for 7 bytes for each further event, because
// the collector may still hold a batch.
func TestMemoryDoesNotGrowWithTheEvents(t *testing.T) {
	t.Parallel()
	const first, more, most = mavenBeginEvents, 5, 8 << 20
	endpoint := testkit.Address(t)
	// The agent counts as alive while it stands still, also on a busy machine.
	c := kit.Start(t, pipeline(endpoint, "missed_heartbeats: 100", "reorder: {max_wait: 5m}, idle_timeout: 10m", "nop: {}"))
	a, results := agent{endpoint: endpoint, capture: mavenBegin, connections: 1, replay: replay.Options{Repeat: more + 1}}.start(t.Context(), t)
	once, often := memoryAt(t, c, a, first), memoryAt(t, c, a, more*first)
	t.Logf("memory in KiB: %d for %d events, %d for %d", once>>10, first, often>>10, more*first)
	assert.LessOrEqual(t, often, once+most)
	a.Stop()
	await(t, results)
	stopAfter(t, c, 1)
}

// memoryAt returns the memory in use of a collector that has paired at least so many events, while the agent stands still.
func memoryAt(t *testing.T, c *kit.Collector, a *bytefrogagent.Agent, events uint64) uint64 {
	t.Helper()
	awaitEvents(t, a, events)
	a.Freeze()
	defer a.Thaw()
	testkit.Eventually(t, "all sent events are paired", func() (bool, string) {
		sent, paired := a.Stats().Events, c.Metric(t, eventsTaken)
		return paired == float64(sent), fmt.Sprint(sent, paired)
	})
	return c.MemoryInUse(t)
}
