// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// metricsLoop hands on metrics of the sessions at every collection interval. Those of
// a session that has ended are handed on once more. Without a pipeline for metrics it
// does nothing.
type metricsLoop struct {
	env     *environment
	next    consumer.Metrics
	builder *metadata.MetricsBuilder
	// sessions are those that are read.
	sessions func() []*follower
	halt     chan struct{}
	done     chan struct{}
	// refusing says that a burst of it goes on, which is logged once.
	refusing bool

	mu sync.Mutex
	// over are the last states of sessions that have ended.
	over []sessionState
}

const (
	// maxOver bounds the sessions that have ended since the last collection.
	maxOver = 1024
	// lastMetrics is how long the last metrics have at a shutdown.
	lastMetrics = time.Second
	// pointsOfSession is how many points record makes of a session.
	pointsOfSession = 8
)

func newMetricsLoop(env *environment, settings receiver.Settings, next consumer.Metrics, sessions func() []*follower) *metricsLoop {
	m := &metricsLoop{env: env, next: next, sessions: sessions, halt: make(chan struct{}), done: make(chan struct{})}
	if next == nil {
		close(m.done)
		return m
	}
	m.builder = metadata.NewMetricsBuilder(env.config.MetricsBuilderConfig, settings)
	go m.run()
	return m
}

// ended says what a session was like at its end.
func (m *metricsLoop) ended(s sessionState) {
	if m.next == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.over) < maxOver {
		s.over, s.streams, s.processes = true, 0, 0
		m.over = append(m.over, s)
		return
	}
	m.env.telemetry.metricPointsDropped(pointsOfSession, droppedQueueFull)
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

// collect hands on the metrics of all sessions. What is refused is not tried again:
// the next collection says it all.
func (m *metricsLoop) collect(ctx context.Context) {
	states := m.takeOver()
	for _, f := range m.sessions() {
		states = append(states, f.state())
	}
	if len(states) == 0 {
		return
	}
	now := m.env.now()
	for i := range states {
		m.record(&states[i], now)
	}
	metrics := m.builder.Emit()
	n := metrics.DataPointCount()
	ctx = m.env.observer.StartMetricsOp(ctx)
	err := m.next.ConsumeMetrics(ctx, metrics)
	m.env.observer.EndMetricsOp(ctx, formatLTTng, n, err)
	if err != nil {
		m.env.telemetry.metricPointsDropped(n, droppedRefused)
		if !m.refusing {
			m.env.logger.Warn("The pipeline refuses metrics: they are dropped until it accepts them", zap.Error(err))
		}
	}
	m.refusing = err != nil
}

func (m *metricsLoop) takeOver() []sessionState {
	m.mu.Lock()
	defer m.mu.Unlock()
	over := m.over
	m.over = nil
	return over
}

func (m *metricsLoop) record(s *sessionState, at time.Time) {
	b, now := m.builder, pcommon.NewTimestampFromTime(at)
	b.RecordLttngStreamsDataPoint(now, s.streams)
	b.RecordLttngProcessesDataPoint(now, s.processes)
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
