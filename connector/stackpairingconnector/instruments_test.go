// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
)

// Package engine tests when its instruments count. Here each is the own metric with its name, and has
// the component's ID.
func TestTheInstrumentsOfTheEngineAreTheOwnMetrics(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	id := component.MustNewIDWithName("stack_pairing", "second")
	builder, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindConnector, id, telemetry.NewTelemetrySettings()))
	require.NoError(t, err)
	t.Cleanup(builder.Shutdown)

	names := map[string]string{"Traces": "decided_traces", "Calls": "decided_calls"}
	count := int64(0)
	for _, all := range []reflect.Value{reflect.ValueOf(instruments(builder)), reflect.ValueOf(*selectionInstruments(builder))} {
		for i := range all.NumField() {
			name := names[all.Type().Field(i).Name]
			if name == "" {
				name = snake(all.Type().Field(i).Name)
			}
			count++
			switch instrument := all.Field(i).Interface().(type) {
			case metric.Int64Counter:
				instrument.Add(t.Context(), count)
			case metric.Int64UpDownCounter:
				instrument.Add(t.Context(), count)
			case metric.Float64Histogram:
				instrument.Record(t.Context(), float64(count))
			}
			m, err := telemetry.GetMetric("otelcol_connector_stack_pairing_" + name)
			require.NoError(t, err)
			want := attribute.NewSet(attribute.String("connector", "stack_pairing/second"))
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				assert.Equal(t, count, data.DataPoints[0].Value, name)
				assert.Equal(t, want, data.DataPoints[0].Attributes, name)
			case metricdata.Histogram[float64]:
				assert.Equal(t, float64(count), data.DataPoints[0].Sum, name)
				assert.Equal(t, want, data.DataPoints[0].Attributes, name)
			}
		}
	}
}

// snake returns SnakeCase as snake_case.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return b.String()
}
