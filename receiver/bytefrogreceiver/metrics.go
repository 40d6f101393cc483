// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// metricsLoop sends the metrics of runs to the pipeline.
type metricsLoop struct {
	*handover.Metrics[session.State]
	builder *metadata.MetricsBuilder
}

// maxOver bounds the runs that have ended since the last collection.
const maxOver = 4 * maxRunID

func newMetricsLoop(run *receiverkit.Run, config *Config, own *telemetry.Telemetry, living func() []session.State) *metricsLoop {
	m := &metricsLoop{}
	if run.Next.Metrics != nil {
		m.builder = metadata.NewMetricsBuilder(config.MetricsBuilderConfig, run.Settings)
	}
	m.Metrics = receiverkit.NewMetrics(run, handover.MetricsSettings[session.State]{
		Living:   living,
		Metrics:  func(states []session.State) pmetric.Metrics { return m.metrics(states, run.Now()) },
		MaxEnded: maxOver, Points: pointsOf, What: "runs",
		Dropped: own.MetricPointsDropped,
	})
	return m
}

func (m *metricsLoop) metrics(states []session.State, at time.Time) pmetric.Metrics {
	now := pcommon.NewTimestampFromTime(at)
	for i := range states {
		m.record(&states[i], now)
	}
	return m.builder.Emit()
}

// modes are the values of the mode attribute.
var modes = [...]metadata.AttributeBytefrogAgentMode{
	metadata.AttributeBytefrogAgentModeInitializing,
	metadata.AttributeBytefrogAgentModeTracing,
	metadata.AttributeBytefrogAgentModePaused,
	metadata.AttributeBytefrogAgentModeSuspended,
	metadata.AttributeBytefrogAgentModeShuttingDown,
	metadata.AttributeBytefrogAgentModeUnknown,
}

func modeAttribute(mode bytefrog.Mode) metadata.AttributeBytefrogAgentMode {
	switch mode {
	case bytefrog.ModeInitializing:
		return metadata.AttributeBytefrogAgentModeInitializing
	case bytefrog.ModeTracing:
		return metadata.AttributeBytefrogAgentModeTracing
	case bytefrog.ModePaused:
		return metadata.AttributeBytefrogAgentModePaused
	case bytefrog.ModeSuspended:
		return metadata.AttributeBytefrogAgentModeSuspended
	case bytefrog.ModeShuttingDown:
		return metadata.AttributeBytefrogAgentModeShuttingDown
	default:
		return metadata.AttributeBytefrogAgentModeUnknown
	}
}

// pointsOfRun is how many points record makes of a run that has no breaks.
const pointsOfRun = len(modes) + 4

// pointsOf returns how many points record makes of a run when all metrics are enabled.
func pointsOf(s *session.State) int {
	points := pointsOfRun
	for _, n := range s.Breaks {
		if n > 0 {
			points++
		}
	}
	return points
}

func (m *metricsLoop) record(s *session.State, now pcommon.Timestamp) {
	b := m.builder
	for _, mode := range modes {
		is := int64(0)
		if mode == modeAttribute(s.Mode) && !s.Over {
			is = 1
		}
		b.RecordBytefrogAgentStatusDataPoint(now, is, mode)
	}
	b.RecordBytefrogAgentSendBuffersDataPoint(now, s.SendBuffers)
	b.RecordBytefrogConnectionCountDataPoint(now, s.Connections)
	b.RecordBytefrogEventsDataPoint(now, int64(s.Events))
	b.RecordBytefrogNetworkIoDataPoint(now, int64(s.Bytes), metadata.AttributeNetworkIoDirectionReceive)
	for cause, n := range s.Breaks {
		if n > 0 {
			b.RecordBytefrogBreaksDataPoint(now, int64(n), callevent.Cause(cause).String())
		}
	}
	b.EmitForResource(metadata.WithResource(s.Resource),
		metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(s.Opened)))
}
