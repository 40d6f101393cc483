// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
)

// metricsLoop hands on metrics of the runs at every collection interval. Those of a
// run that has ended are handed on once more. Without a pipeline for metrics it
// does nothing.
type metricsLoop struct {
	env     *environment
	next    consumer.Metrics
	builder *metadata.MetricsBuilder
	halt    chan struct{}
	done    chan struct{}
	// refusing says that a burst of it goes on, which is logged once.
	refusing bool

	mu sync.Mutex
	// over are the last states of runs that have ended; full says that one had no
	// room, which is logged once for each collection.
	over []runState
	full bool
}

const (
	// maxOver bounds the runs that have ended since the last collection.
	maxOver = 4 * maxRunID
	// lastMetrics is how long the last metrics have at a shutdown.
	lastMetrics = time.Second
)

func newMetricsLoop(env *environment, settings receiver.Settings, next consumer.Metrics) *metricsLoop {
	m := &metricsLoop{env: env, next: next, halt: make(chan struct{}), done: make(chan struct{})}
	if next == nil {
		close(m.done)
		return m
	}
	m.builder = metadata.NewMetricsBuilder(env.config.MetricsBuilderConfig, settings)
	go m.run()
	return m
}

// ended says what a run was like at its end.
func (m *metricsLoop) ended(s runState) {
	if m.next == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.over) < maxOver {
		s.over, s.connections, s.sendBuffers = true, 0, 0
		m.over = append(m.over, s)
		return
	}
	m.env.telemetry.metricPointsDropped(s.points(), droppedQueueFull)
	if !m.full {
		m.full = true
		m.env.logger.Warn("More runs ended than the last metrics are kept of: those of a run are dropped, and so are others until the next collection",
			zap.Int("runs", maxOver), zap.Duration("collection_interval", m.env.config.CollectionInterval))
	}
}

// stop hands on the last metrics and waits for the end of it.
func (m *metricsLoop) stop() {
	close(m.halt)
	<-m.done
}

func (m *metricsLoop) run() {
	defer close(m.done)
	ticker := time.NewTicker(m.env.config.CollectionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.collect(m.env.ctx)
		case <-m.halt:
			ctx, cancel := context.WithTimeout(m.env.ctx, lastMetrics)
			m.collect(ctx)
			cancel()
			return
		}
	}
}

// collect hands on the metrics of all runs. What is refused is not tried again: the
// next collection says it all.
func (m *metricsLoop) collect(ctx context.Context) {
	states := m.takeOver()
	for _, run := range m.env.registry.list() {
		states = append(states, run.state())
	}
	if len(states) == 0 {
		return
	}
	now := pcommon.NewTimestampFromTime(m.env.now())
	for i := range states {
		m.record(&states[i], now)
	}
	metrics := m.builder.Emit()
	n := metrics.DataPointCount()
	ctx = m.env.observer.StartMetricsOp(ctx)
	err := m.next.ConsumeMetrics(ctx, metrics)
	m.env.observer.EndMetricsOp(ctx, formatBytefrog, n, err)
	if err != nil {
		m.env.telemetry.metricPointsDropped(n, droppedRefused)
		if !m.refusing {
			m.env.logger.Warn("The pipeline refuses metrics: they are dropped until it accepts them", zap.Error(err))
		}
	}
	m.refusing = err != nil
}

func (m *metricsLoop) takeOver() []runState {
	m.mu.Lock()
	defer m.mu.Unlock()
	over := m.over
	m.over, m.full = nil, false
	return over
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

// points is how many points record makes of a run when all metrics are enabled.
func (s *runState) points() int {
	points := pointsOfRun
	for _, n := range s.breaks {
		if n > 0 {
			points++
		}
	}
	return points
}

func (m *metricsLoop) record(s *runState, now pcommon.Timestamp) {
	b := m.builder
	for _, mode := range modes {
		is := int64(0)
		if mode == modeAttribute(s.mode) && !s.over {
			is = 1
		}
		b.RecordBytefrogAgentStatusDataPoint(now, is, mode)
	}
	b.RecordBytefrogAgentSendBuffersDataPoint(now, s.sendBuffers)
	b.RecordBytefrogConnectionsDataPoint(now, s.connections)
	b.RecordBytefrogEventsDataPoint(now, int64(s.events))
	b.RecordBytefrogNetworkIoDataPoint(now, int64(s.bytes), metadata.AttributeNetworkIoDirectionReceive)
	for cause, n := range s.breaks {
		if n > 0 {
			b.RecordBytefrogBreaksDataPoint(now, int64(n), callevent.Cause(cause).String())
		}
	}
	b.EmitForResource(metadata.WithResource(s.resource),
		metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(s.opened)))
}
