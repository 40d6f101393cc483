// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// lastTimeout bounds the last collection, at the shutdown.
const lastTimeout = time.Second

// MetricsSettings are the settings of Metrics. All fields except Next and IsLast are required.
type MetricsSettings[T any] struct {
	Settings
	// Next is nil if no pipeline accepts metrics. Then Metrics does nothing.
	Next consumer.Metrics
	// Interval is the time between two collections.
	Interval time.Duration
	// Living returns the states of all living runs, servers, or agents.
	Living func() []T
	// IsLast reports whether Living does not return a state again; nil: it returns all states again.
	IsLast func(*T) bool
	// Metrics returns the metrics of one or more states. One goroutine at a time calls it.
	Metrics func(states []T) pmetric.Metrics
	// MaxEnded bounds the last states that wait for the next collection, or for another one after a refusal.
	MaxEnded int
	// Points returns the number of data points that Metrics makes of a state.
	Points func(*T) int
	// What: the plural noun of the log lines, such as: runs.
	What string
	// Dropped counts dropped data points (DroppedRefused, DroppedQueueFull).
	Dropped func(points int, reason string)
}

// Metrics sends metrics at every collection interval: of all living states T, and once more of each ended one. The
// methods can be called from many goroutines.
type Metrics[T any] struct {
	settings MetricsSettings[T]
	halt     chan struct{}
	done     chan struct{}
	// refusing is a burst of refusals.
	refusing logline.Burst

	mu sync.Mutex
	// ended has the last states. full: a state did not fit, which is logged once for each collection.
	ended []T
	full  bool
}

// NewMetrics returns a hand-over of metrics, whose goroutine runs until Close.
func NewMetrics[T any](settings MetricsSettings[T]) *Metrics[T] {
	m := &Metrics[T]{settings: settings, halt: make(chan struct{}), done: make(chan struct{})}
	if settings.Next == nil {
		close(m.done)
		return m
	}
	go m.run()
	return m
}

// Ended notes a last state for the next collection.
func (m *Metrics[T]) Ended(last T) {
	if m.settings.Next == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold(last)
}

// hold is Ended. The lock is held.
func (m *Metrics[T]) hold(last T) {
	if len(m.ended) < m.settings.MaxEnded {
		m.ended = append(m.ended, last)
		return
	}
	m.settings.Dropped(m.settings.Points(&last), DroppedQueueFull)
	if !m.full {
		m.full = true
		m.settings.Logger.Warn("Too many "+m.settings.What+" ended since the last collection: the receiver drops the last metrics of others until the next collection",
			zap.Int(m.settings.What, m.settings.MaxEnded), zap.Duration("collection_interval", m.settings.Interval))
	}
}

// Close sends the last metrics, and returns when that has ended. It can be called once.
func (m *Metrics[T]) Close() {
	close(m.halt)
	<-m.done
}

func (m *Metrics[T]) run() {
	defer close(m.done)
	ticker := time.NewTicker(m.settings.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.collect(m.settings.Context)
		case <-m.halt:
			ctx, cancel := context.WithTimeout(m.settings.Context, lastTimeout)
			m.collect(ctx)
			cancel()
			return
		}
	}
}

// collect sends the metrics of all states. It has one try, because the next collection has all values again.
func (m *Metrics[T]) collect(ctx context.Context) {
	states := m.endedSinceLast()
	ended := len(states)
	states = append(states, m.settings.Living()...)
	if len(states) == 0 {
		return
	}
	metrics := m.settings.Metrics(states)
	n := metrics.DataPointCount()
	ctx = m.settings.Observer.StartMetricsOp(ctx)
	err := m.settings.Next.ConsumeMetrics(ctx, metrics)
	m.settings.Observer.EndMetricsOp(ctx, m.settings.Format, n, err)
	if err != nil {
		m.settings.Dropped(n, DroppedRefused)
		if !consumererror.IsPermanent(err) {
			m.holdRefused(states, ended)
		}
		if since, due := m.refusing.Count(m.settings.Now()); due {
			m.settings.Logger.Warn("The pipeline refuses metrics: the receiver drops them until the pipeline accepts some",
				zap.Int("refusals_since_last_line", since), zap.Error(err))
		}
		return
	}
	m.refusing.Over()
}

// holdRefused holds the last states of a refused collection for the next one. The first ended states of it were held
// before, and the others are those of Living.
func (m *Metrics[T]) holdRefused(states []T, ended int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	newer := m.ended
	m.ended = nil
	for i := range states {
		if i < ended || m.settings.IsLast != nil && m.settings.IsLast(&states[i]) {
			m.hold(states[i])
		}
	}
	for _, last := range newer {
		m.hold(last)
	}
}

// endedSinceLast returns the states that ended since the last collection, and removes them.
func (m *Metrics[T]) endedSinceLast() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	ended := m.ended
	m.ended, m.full = nil, false
	return ended
}
