// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package telemetrytest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Statuses is a host that records the statuses of a component, in order. Many goroutines may use it.
type Statuses struct {
	component.Host
	mu       sync.Mutex
	reported []string
}

// NewStatuses returns a host without extensions.
func NewStatuses() *Statuses { return &Statuses{Host: componenttest.NewNopHost()} }

// Report implements componentstatus.Reporter.
func (s *Statuses) Report(event *componentstatus.Event) {
	text := event.Status().String()
	if event.Err() != nil {
		text += ": " + event.Err().Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported = append(s.reported, text)
}

// All returns the statuses so far, such as: StatusRecoverableError: 1 of 1 failed.
func (s *Statuses) All() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reported)
}

// Last returns the last status; empty means that there was none.
func (s *Statuses) Last() string {
	all := s.All()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// Gauge returns the points of a gauge of whole numbers, by their attributes, such as {server=localhost:3658}.
func Gauge(t testing.TB, telemetry *componenttest.Telemetry, name string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(context.Background(), &all))
	points := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if gauge, is := m.Data.(metricdata.Gauge[int64]); is && m.Name == name {
				for _, p := range gauge.DataPoints {
					points[attributes(t, name, p.Attributes)] = p.Value
				}
			}
		}
	}
	return points
}
