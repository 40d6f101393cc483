// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// metricsLoop hands on metrics of the sessions.
type metricsLoop struct {
	*handover.Metrics[sessionState]
	builder *metadata.MetricsBuilder
}

const (
	// maxOver bounds the sessions that have ended since the last collection.
	maxOver = 1024
	// pointsOfSession is how many points record makes of a session.
	pointsOfSession = 8
)

func newMetricsLoop(env *environment, settings receiver.Settings, next consumer.Metrics, sessions func() []*follower) *metricsLoop {
	m := &metricsLoop{}
	if next != nil {
		m.builder = metadata.NewMetricsBuilder(env.config.MetricsBuilderConfig, settings)
	}
	m.Metrics = handover.NewMetrics(handover.MetricsSettings[sessionState]{
		Settings: env.handoverSettings(env.logger), Next: next, Interval: env.config.CollectionInterval,
		Living:   func() []sessionState { return statesOf(sessions()) },
		Metrics:  func(states []sessionState) pmetric.Metrics { return m.metrics(states, env.now()) },
		MaxEnded: maxOver, Points: func(*sessionState) int { return pointsOfSession }, What: "sessions",
		Dropped: env.telemetry.metricPointsDropped,
	})
	return m
}

// ended says what a session was like at its end.
func (m *metricsLoop) ended(s sessionState) {
	s.over, s.streams, s.processes = true, 0, 0
	m.Ended(s)
}

func statesOf(sessions []*follower) []sessionState {
	states := make([]sessionState, len(sessions))
	for i, f := range sessions {
		states[i] = f.state()
	}
	return states
}

func (m *metricsLoop) metrics(states []sessionState, at time.Time) pmetric.Metrics {
	for i := range states {
		m.record(&states[i], at)
	}
	return m.builder.Emit()
}

func (m *metricsLoop) record(s *sessionState, at time.Time) {
	b, now := m.builder, pcommon.NewTimestampFromTime(at)
	b.RecordLttngStreamCountDataPoint(now, s.streams)
	b.RecordLttngProcessCountDataPoint(now, s.processes)
	b.RecordLttngPacketsDataPoint(now, s.packets)
	b.RecordLttngPacketsLostDataPoint(now, s.packetsLost)
	b.RecordLttngNetworkIoDataPoint(now, s.bytes, metadata.AttributeNetworkIoDirectionReceive)
	b.RecordLttngEventsDataPoint(now, s.events)
	b.RecordLttngEventsDiscardedDataPoint(now, s.discarded)
	if s.newest > 0 && !s.over {
		b.RecordLttngLagDataPoint(now, time.Duration(at.UnixNano()-s.newest).Seconds())
	}
	b.EmitForResource(metadata.WithResource(s.resource),
		metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(s.opened)))
}
