// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// points returns the values of the last metrics, by name and the value of the attribute, if there is
// one.
func points(sink *consumertest.MetricsSink) map[string]int64 {
	all := sink.AllMetrics()
	if len(all) == 0 {
		return nil
	}
	values := map[string]int64{}
	for _, resource := range all[len(all)-1].ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				slice := m.Gauge().DataPoints
				if m.Type() == pmetric.MetricTypeSum {
					slice = m.Sum().DataPoints
				}
				for _, p := range slice().All() {
					name := m.Name()
					for _, v := range p.Attributes().All() {
						name += "/" + v.AsString()
					}
					values[name] = p.IntValue()
				}
			}
		}
	}
	return values
}

func TestTheStateOfAgentsBecomesMetrics(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.CollectionInterval = 100 * time.Millisecond })
	a := connect(b, 1)
	p := a.join()
	data := append(namesOne(), calls(0, 5)...)
	p.write(data)
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing, SendBuffers: 7}, bytefrog.DataBreak{Sequence: 10})
	want := map[string]int64{
		"bytefrog.agent.status/initializing": 0, "bytefrog.agent.status/tracing": 1, "bytefrog.agent.status/paused": 0,
		"bytefrog.agent.status/suspended": 0, "bytefrog.agent.status/shutting_down": 0, "bytefrog.agent.status/unknown": 0,
		"bytefrog.agent.send_buffers": 7, "bytefrog.connection.count": 1, "bytefrog.events": 10,
		"bytefrog.network.io/receive": int64(len(data)), "bytefrog.breaks/suspended": 1,
	}
	b.Await("the metrics", func() bool { return assert.ObjectsAreEqual(want, points(&b.Metrics.MetricsSink)) })
	a.finish()
	b.awaitRuns(0)
	// The last ones say that it is gone, with its sums.
	want["bytefrog.agent.status/tracing"], want["bytefrog.agent.send_buffers"], want["bytefrog.connection.count"] = 0, 0, 0
	b.Await("the last metrics", func() bool { return assert.ObjectsAreEqual(want, points(&b.Metrics.MetricsSink)) })
}

func TestSumsBeginWithTheRunAndAreCumulative(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	a.join()
	opened := b.receiver.env.registry.lookup(1).State().Opened
	done := b.shutdownInBackground()
	a.answerSuspend(0)
	a.finish()
	require.NoError(t, <-done)
	all := b.Metrics.AllMetrics()
	require.Len(t, all, 1, "the shutdown sends metrics of ended runs")
	require.Equal(t, 1, all[0].ResourceMetrics().Len())
	resource := all[0].ResourceMetrics().At(0)
	assert.Equal(t, defaultServiceName, resource.Resource().Attributes().AsRaw()[attributeServiceName])
	assert.Len(t, resource.Resource().Attributes().AsRaw()[attributeServiceInstanceID], 36)
	for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
		assert.NotEmpty(t, m.Unit(), m.Name())
		if m.Type() != pmetric.MetricTypeSum {
			continue
		}
		assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality(), m.Name())
		for _, p := range m.Sum().DataPoints().All() {
			assert.Equal(t, opened.UnixNano(), p.StartTimestamp().AsTime().UnixNano(), m.Name())
		}
	}
}

func TestMetricsThatAreRefusedAreCounted(t *testing.T) {
	b := unstartedBed(t, quickly, func(_ *bed, c *Config) { c.CollectionInterval = 100 * time.Millisecond })
	refusing, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return receivertestbed.ErrRefused })
	require.NoError(t, err)
	b.Next.Metrics = refusing
	b.Start()
	a := connect(b, 1)
	b.Await("drops", func() bool { return b.Counter("metric_points_dropped") >= 18 })
	assert.Len(t, b.Log.FilterMessageSnippet("refuses metrics").All(), 1)
	a.finish()
	b.awaitRuns(0)
}

func TestTheLastMetricsOfTooManyRunsAreDroppedAndCounted(t *testing.T) {
	b := newBed(t, func(_ *bed, c *Config) { c.CollectionInterval = time.Hour })
	loop := b.receiver.env.metrics
	state := session.State{Resource: pcommon.NewResource()}
	state.Breaks[callevent.CauseSuspended] = 3
	for range maxOver + 2 {
		loop.Ended(state)
	}
	assert.EqualValues(t, 2*11, b.Counter("metric_points_dropped"))
	assert.Len(t, b.Log.FilterMessageSnippet("Too many runs ended").All(), 1)
	b.Shutdown()
	all := b.Metrics.AllMetrics()
	require.Len(t, all, 1)
	assert.Equal(t, 11*maxOver, all[0].DataPointCount(), "points says what record does")
	assert.EqualValues(t, 2*11, b.Counter("metric_points_dropped"))
}
