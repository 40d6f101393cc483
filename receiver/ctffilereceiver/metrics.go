// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
)

const (
	// maxEnded bounds the traces that have ended since the last collection.
	maxEnded = 1024
	// pointsOfTrace is the maximum number of points of a trace.
	pointsOfTrace = 6
)

// openMetrics starts the delivery of the metrics of traces; living returns the states of those that
// have not ended.
func openMetrics(run *receiverkit.Run, config *Config, counters *telemetry, living func() []session.State) *handover.Metrics[session.State] {
	var builder *metadata.MetricsBuilder
	if run.Next.Metrics != nil {
		builder = metadata.NewMetricsBuilder(config.MetricsBuilderConfig, run.Settings)
	}
	return receiverkit.NewMetrics(run, handover.MetricsSettings[session.State]{
		Living: living,
		Metrics: func(states []session.State) pmetric.Metrics {
			now := run.Now()
			for i := range states {
				recordTrace(builder, &states[i], now)
			}
			return builder.Emit()
		},
		MaxEnded: maxEnded, Points: func(*session.State) int { return pointsOfTrace }, What: "traces",
		Dropped: counters.MetricPointsDropped,
	})
}

func recordTrace(b *metadata.MetricsBuilder, s *session.State, at time.Time) {
	now := pcommon.NewTimestampFromTime(at)
	b.RecordLttngStreamCountDataPoint(now, s.Streams)
	b.RecordLttngProcessCountDataPoint(now, s.Processes)
	b.RecordLttngPacketsDataPoint(now, s.Packets)
	b.RecordLttngPacketsLostDataPoint(now, s.PacketsLost)
	b.RecordLttngEventsDataPoint(now, s.Events)
	b.RecordLttngEventsDiscardedDataPoint(now, s.Discarded)
	b.EmitForResource(metadata.WithResource(s.Resource),
		metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(s.Opened)))
}
