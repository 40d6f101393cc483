// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// sumOf is the sum of a metric of the receiver's own over all its attributes.
func sumOf(t testing.TB, telemetry *componenttest.Telemetry, name string) int64 {
	t.Helper()
	metric, err := telemetry.GetMetric("otelcol_" + name)
	if err != nil {
		// Nothing was counted yet.
		return 0
	}
	sum, ok := metric.Data.(metricdata.Sum[int64])
	require.True(t, ok, "%s is no sum", name)
	var total int64
	for _, point := range sum.DataPoints {
		total += point.Value
	}
	return total
}
