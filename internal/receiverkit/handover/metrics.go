// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// lastMetrics is how long the last metrics have at a shutdown.
const lastMetrics = time.Second

// MetricsSettings are what Metrics are made of. All fields but Next have to be set.
type MetricsSettings[T any] struct {
	Settings
	// Next is nil where no pipeline takes metrics: nothing is done then.
	Next consumer.Metrics
	// Interval is the time between two collections.
	Interval time.Duration
	// Living gives the states of what lives.
	Living func() []T
	// Metrics makes of states, of which there is at least one, what the pipeline takes.
	// It is called by one goroutine at a time.
	Metrics func(states []T) pmetric.Metrics
	// MaxEnded is how many last states are kept until the next collection.
	MaxEnded int
	// Points is how many data points Metrics makes of a state.
	Points func(*T) int
	// What says, for the log, what there are states of, such as: runs.
	What string
	// Dropped counts data points that were dropped (DroppedRefused, DroppedQueueFull).
	Dropped func(points int, reason string)
}

// Metrics hands on metrics at every collection interval: of the states T of what lives,
// and once more of what has ended. It is for many goroutines.
type Metrics[T any] struct {
	settings MetricsSettings[T]
	halt     chan struct{}
	done     chan struct{}
	// refusing is a burst of what the pipeline refused.
	refusing logline.Burst

	mu sync.Mutex
	// ended are the last states of what has ended; full says that one had no room,
	// which is logged once for each collection.
	ended []T
	full  bool
}

// NewMetrics makes a hand-over of metrics and starts its goroutine, which Close ends.
func NewMetrics[T any](settings MetricsSettings[T]) *Metrics[T] {
	m := &Metrics[T]{settings: settings, halt: make(chan struct{}), done: make(chan struct{})}
	if settings.Next == nil {
		close(m.done)
		return m
	}
	go m.run()
	return m
}

// Ended says what something was like at its end.
func (m *Metrics[T]) Ended(last T) {
	if m.settings.Next == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ended) < m.settings.MaxEnded {
		m.ended = append(m.ended, last)
		return
	}
	m.settings.Dropped(m.settings.Points(&last), DroppedQueueFull)
	if !m.full {
		m.full = true
		m.settings.Logger.Warn("More "+m.settings.What+" ended than the last metrics are kept of: those of one are dropped, and so are others until the next collection",
			zap.Int(m.settings.What, m.settings.MaxEnded), zap.Duration("collection_interval", m.settings.Interval))
	}
}

// Close hands on the last metrics and waits for the end of it. It is called once.
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
			ctx, cancel := context.WithTimeout(m.settings.Context, lastMetrics)
			m.collect(ctx)
			cancel()
			return
		}
	}
}

// collect hands on the metrics of all states. What is refused is not tried again: the
// next collection says it all.
func (m *Metrics[T]) collect(ctx context.Context) {
	states := append(m.takeEnded(), m.settings.Living()...)
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
		if since, say := m.refusing.Say(m.settings.Now()); say {
			m.settings.Logger.Warn("The pipeline refuses metrics: they are dropped until it accepts them",
				zap.Int("refusals_since_last_line", since), zap.Error(err))
		}
		return
	}
	m.refusing.Over()
}

func (m *Metrics[T]) takeEnded() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	ended := m.ended
	m.ended, m.full = nil, false
	return ended
}
