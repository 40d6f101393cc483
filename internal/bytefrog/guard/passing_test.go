// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// replayed returns the data of a collector after an agent has played a capture to an address, in a version of the
// protocol.
func replayed(t *testing.T, c *collector, address, name string, version uint8) *run {
	t.Helper()
	recorded, err := capture.Open("../../../testdata/bytefrog/" + name + ".zip")
	require.NoError(t, err)
	recording, err := replay.Load(recorded)
	require.NoError(t, err)
	a := bytefrogagent.New(bytefrogagent.Options{Endpoint: address, Version: version}, replay.New(recording, replay.Options{}))
	result := a.Run(context.Background())
	require.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
	c.awaitEnds(1)
	return c.only()
}

func TestTheReceiverSeesNoDifferenceBehindAGuard(t *testing.T) {
	captures := map[string]uint8{"shop": 2, "suspend": 1, "startsuspended": 2, "maven": 1}
	if testing.Short() {
		captures = map[string]uint8{"shop": 2} // the others have 3 to 90 times as many events
	}
	for name, version := range captures {
		t.Run(name, func(t *testing.T) {
			threeConnections := func(c *bytefrogreceiver.Config) { c.Agent.DataConnections = 3 }
			direct := newCollector(t, testkit.Address(t), threeConnections)
			want := replayed(t, direct, direct.address, name, version)
			behind := newCollector(t, testkit.Address(t), threeConnections)
			b := newBed(t, []string{behind.address})
			got := replayed(t, behind, b.address, name, version)
			require.Equal(t, len(want.events), len(got.events))
			for number, e := range want.events {
				require.Equal(t, e, got.events[number], number)
				require.Equal(t, want.times[number]-want.times[0], got.times[number]-got.times[0], "time of %d", number)
			}
			assert.Equal(t, want.breaks, got.breaks)
			assert.Zero(t, b.guard.counts.Suspensions.Load())
			assert.Zero(t, b.guard.counts.Dropped.Load())
			assert.EqualValues(t, len(want.events), b.guard.counts.Passed.Load())
			direct.stop()
			behind.stop()
			// The number of heartbeats varies, and so do the reported modes.
			chance := []string{"bytefrog.agent.mode,", "bytefrog.network.io"}
			assert.Equal(t, direct.delivered().without(chance), behind.delivered().without(chance))
		})
	}
}

func TestManyAgentsAtTheSameTime(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address})
	var results []<-chan bytefrogagent.Result
	programs := make([]*counting, 5)
	for i := range programs {
		programs[i] = &counting{until: 20_000}
		_, result := b.start(t.Context(), programs[i])
		results = append(results, result)
	}
	for _, r := range results {
		result := ended(t, r)
		assert.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
	}
	c.awaitEnds(len(programs))
	c.stop()
	require.Len(t, c.runs(), len(programs))
	programs[0].checkRuns(t, c.runs())
	assert.Equal(t, len(programs)*20_000, c.number())
}
