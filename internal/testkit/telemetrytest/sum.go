// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetrytest reads a component's own metrics and statuses in tests.
package telemetrytest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Sum returns the sum of a counter over all its attributes; 0 if it was not counted yet.
func Sum(t testing.TB, telemetry *componenttest.Telemetry, name string) int64 {
	t.Helper()
	m, err := telemetry.GetMetric(name)
	if err != nil {
		return 0
	}
	counter, ok := m.Data.(metricdata.Sum[int64])
	require.True(t, ok, "%s is a %T, no counter of whole numbers", name, m.Data)
	sum := int64(0)
	for _, point := range counter.DataPoints {
		sum += point.Value
	}
	return sum
}
