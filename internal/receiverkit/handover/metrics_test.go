// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// state has a number of data points.
type state struct {
	points int
	last   bool
}

// someStates returns a function that returns n living states, with one point each.
func someStates(n int) func() []state {
	return func() []state { return make([]state, n) }
}

func (b *bed) metrics(next *pipeline, interval time.Duration, living func() []state) *Metrics[state] {
	settings := MetricsSettings[state]{
		Settings: b.settings, Interval: interval, Living: living, MaxEnded: 3, What: "runs",
		IsLast: func(s *state) bool { return s.last },
		Points: func(s *state) int { return 1 + s.points },
		Metrics: func(states []state) pmetric.Metrics {
			metrics := pmetric.NewMetrics()
			points := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints()
			for _, s := range states {
				for range 1 + s.points {
					points.AppendEmpty()
				}
			}
			return metrics
		},
		Dropped: func(points int, reason string) { b.add(points, reason) },
	}
	if next != nil {
		settings.Next = next
	}
	return NewMetrics(settings)
}

// points returns the number of data points of each hand-over.
func (p *pipeline) points() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int
	for _, metrics := range p.metrics {
		all = append(all, metrics.DataPointCount())
	}
	return all
}

func TestMetricsOfLivingStatesAreSentAtEveryInterval(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	m := b.metrics(next, time.Millisecond, someStates(2))
	b.await("collections", func() bool { return len(next.points()) > 3 })
	m.Close()
	for _, points := range next.points() {
		assert.Equal(t, 2, points)
	}
	assert.Empty(t, b.dropped())
}

func TestAnEndedStateIsOnlyInTheNextMetrics(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	m := b.metrics(next, time.Hour, someStates(0))
	m.collect(t.Context())
	assert.Empty(t, next.points(), "no state, no metrics")
	m.Ended(state{points: 4})
	m.collect(t.Context())
	m.collect(t.Context())
	assert.Equal(t, []int{5}, next.points())
	m.Ended(state{points: 6})
	m.Close()
	assert.Equal(t, []int{5, 7}, next.points(), "the shutdown sends ended states")
	assert.EqualValues(t, 12, b.observed("accepted_metric_points"))
}

func TestLastStatesBeyondTheBoundAreDroppedAndCounted(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	m := b.metrics(next, time.Hour, someStates(0))
	for collection := range 2 {
		for range 5 {
			m.Ended(state{points: 9})
		}
		assert.Equal(t, map[string]int{DroppedQueueFull: 20 * (collection + 1)}, b.dropped())
		assert.Equal(t, collection+1, b.lines("Too many runs ended"))
		m.collect(t.Context())
		require.Len(t, next.points(), collection+1)
		assert.Equal(t, 30, next.points()[collection])
	}
	m.Close()
}

func TestRefusedMetricsAreDroppedAndCounted(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	m := b.metrics(next, time.Hour, someStates(2))
	for range 3 {
		m.collect(t.Context())
	}
	assert.Equal(t, 3, next.tried())
	assert.Equal(t, map[string]int{DroppedRefused: 6}, b.dropped())
	assert.Equal(t, 1, b.lines("refuses metrics"))
	b.pass(logline.Pause)
	next.refuseWith(nil)
	m.collect(t.Context())
	next.refuseWith(errRefused)
	m.Close()
	assert.Equal(t, 2, b.lines("refuses metrics"), "another burst")
	assert.Equal(t, []int{2}, next.points())
}

func TestLastStatesOfRefusedMetricsAreSentAgain(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	living := []state{{points: 10}, {points: 20, last: true}}
	m := b.metrics(next, time.Hour, func() []state { return living })
	m.Ended(state{points: 1})
	m.collect(t.Context())
	living = living[:1]
	m.Ended(state{points: 2})
	m.collect(t.Context())
	next.refuseWith(nil)
	m.collect(t.Context())
	m.collect(t.Context())
	assert.Equal(t, []int{2 + 21 + 3 + 11, 11}, next.points())

	next.refuseWith(errRefused)
	for range 3 { // as many as wait
		m.Ended(state{points: 4})
	}
	m.collect(t.Context())
	before := b.dropped()[DroppedQueueFull]
	m.Ended(state{points: 6})
	assert.Equal(t, before+7, b.dropped()[DroppedQueueFull])
	next.refuseWith(consumererror.NewPermanent(errRefused))
	m.collect(t.Context())
	next.refuseWith(nil)
	m.Close()
	assert.Equal(t, []int{37, 11, 11}, next.points(), "not after a permanent error")
}

func TestWithoutAPipelineForMetricsNoStateIsRead(t *testing.T) {
	b := newBed(t)
	m := b.metrics(nil, time.Nanosecond, func() []state {
		assert.Fail(t, "no pipeline needs states")
		return nil
	})
	for range 10 {
		m.Ended(state{})
	}
	m.Close()
	assert.Empty(t, b.dropped())
}
