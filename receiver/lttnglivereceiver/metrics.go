// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/session"
)

const (
	// maxEnded bounds the sessions that have ended since the last collection.
	maxEnded = 1024
	// pointsOfSession is the maximum number of points of a session.
	pointsOfSession = 8
)

// openMetrics starts the delivery of the metrics of the sessions.
func (r *liveReceiver) openMetrics() {
	var builder *metadata.MetricsBuilder
	if r.run.Next.Metrics != nil {
		builder = metadata.NewMetricsBuilder(r.config.MetricsBuilderConfig, r.kit.Settings)
	}
	r.metrics = receiverkit.NewMetrics(r.run, handover.MetricsSettings[session.State]{
		Living: func() []session.State {
			var states []session.State
			for _, s := range r.watcher.active() {
				states = append(states, s.State())
			}
			return states
		},
		Metrics: func(states []session.State) pmetric.Metrics {
			now := r.env.Now()
			for i := range states {
				recordSession(builder, &states[i], now)
			}
			return builder.Emit()
		},
		MaxEnded: maxEnded, Points: func(*session.State) int { return pointsOfSession }, What: "sessions",
		Dropped: r.telemetry.MetricPointsDropped,
	})
}

func recordSession(b *metadata.MetricsBuilder, s *session.State, at time.Time) {
	now := pcommon.NewTimestampFromTime(at)
	b.RecordLttngStreamCountDataPoint(now, s.Streams)
	b.RecordLttngProcessCountDataPoint(now, s.Processes)
	b.RecordLttngPacketsDataPoint(now, s.Packets)
	b.RecordLttngPacketsLostDataPoint(now, s.PacketsLost)
	b.RecordLttngNetworkIoDataPoint(now, s.Bytes, metadata.AttributeNetworkIoDirectionReceive)
	b.RecordLttngEventsDataPoint(now, s.Events)
	b.RecordLttngEventsDiscardedDataPoint(now, s.Discarded)
	if s.Newest > 0 && !s.Ended {
		b.RecordLttngLagDataPoint(now, time.Duration(at.UnixNano()-s.Newest).Seconds())
	}
	b.EmitForResource(metadata.WithResource(s.Resource),
		metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(s.Opened)))
}
