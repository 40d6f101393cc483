// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

func TestMetricsShowTheStateOfASession(t *testing.T) {
	var clock handClock
	recordings := captured(t, "cyg1")
	r := newRelay(t, recordings, lttnglive.RelayOptions{Clock: clock.read})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.CollectionInterval = 100 * time.Millisecond })
	b.awaitSaid("The session is attached")
	clock.move(last(recordings))
	b.awaitRecords(7886)
	values := func() map[string]float64 {
		values := map[string]float64{}
		all := b.metrics.AllMetrics()
		if len(all) == 0 {
			return nil
		}
		resource := all[len(all)-1].ResourceMetrics().At(0)
		assert.Equal(t, "cyg1", textOf(resource.Resource().Attributes(), process.AttributeSession))
		for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "lttng.lag" {
				values[m.Name()] = m.Gauge().DataPoints().At(0).DoubleValue()
			} else {
				values[m.Name()] = float64(m.Sum().DataPoints().At(0).IntValue())
			}
		}
		return values
	}
	b.await("a collection", func() bool { return values()["lttng.events.discarded"] == 8951 })
	got := values()
	require.Contains(t, got, "lttng.lag")
	assert.EqualValues(t, 7886, got["lttng.events"])
	assert.EqualValues(t, 98, got["lttng.packets"])
	assert.EqualValues(t, 2, got["lttng.stream.count"])
	assert.EqualValues(t, 1, got["lttng.process.count"])
	assert.Zero(t, got["lttng.packets.lost"])
	assert.Greater(t, got["lttng.network.io"], 100_000.0)
	b.shutdown()
	got = values()
	assert.Zero(t, got["lttng.stream.count"])
	assert.NotContains(t, got, "lttng.lag")
}
