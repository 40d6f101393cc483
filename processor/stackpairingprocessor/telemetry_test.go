// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// sumOf is the value of a metric that is a sum, 0 where there is none yet.
func sumOf(t testing.TB, telemetry *componenttest.Telemetry, name string, attributes ...string) (sum int64) {
	t.Helper()
	metric, err := telemetry.GetMetric("otelcol_processor_stack_pairing_" + name)
	if err != nil {
		return 0
	}
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		if len(attributes) == 0 || hasValue(point.Attributes, attributes[0]) {
			sum += point.Value
		}
	}
	return sum
}

func hasValue(set attribute.Set, value string) bool {
	for _, a := range set.ToSlice() {
		if a.Value.AsString() == value {
			return true
		}
	}
	return false
}
