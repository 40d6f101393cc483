// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ownmetrics_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
)

var (
	ctx   = context.Background()
	cause = metric.WithAttributeSet(attribute.NewSet(attribute.String("cause", "gap")))
)

// of is the meter of a receiver.
func of(name string, provider metric.MeterProvider) metric.Meter {
	id := component.MustNewIDWithName("bytefrog", name)
	return ownmetrics.Of(component.KindReceiver, id, component.TelemetrySettings{MeterProvider: provider}).MeterProvider.Meter("scope")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// instruments count 1 with an attribute and 1 without, each in its own way.
var instruments = map[string]func(metric.Meter){
	"an int64 counter":                  func(m metric.Meter) { addTwice[int64](must(m.Int64Counter("m"))) },
	"an int64 up-down counter":          func(m metric.Meter) { addTwice[int64](must(m.Int64UpDownCounter("m"))) },
	"an int64 histogram":                func(m metric.Meter) { recordTwice[int64](must(m.Int64Histogram("m"))) },
	"an int64 gauge":                    func(m metric.Meter) { recordTwice[int64](must(m.Int64Gauge("m"))) },
	"a float64 counter":                 func(m metric.Meter) { addTwice[float64](must(m.Float64Counter("m"))) },
	"a float64 up-down counter":         func(m metric.Meter) { addTwice[float64](must(m.Float64UpDownCounter("m"))) },
	"a float64 histogram":               func(m metric.Meter) { recordTwice[float64](must(m.Float64Histogram("m"))) },
	"a float64 gauge":                   func(m metric.Meter) { recordTwice[float64](must(m.Float64Gauge("m"))) },
	"an observed int64 counter":         observedInt(func(m metric.Meter) (metric.Int64Observable, error) { return m.Int64ObservableCounter("m") }),
	"an observed int64 up-down counter": observedInt(func(m metric.Meter) (metric.Int64Observable, error) { return m.Int64ObservableUpDownCounter("m") }),
	"an observed int64 gauge":           observedInt(func(m metric.Meter) (metric.Int64Observable, error) { return m.Int64ObservableGauge("m") }),
	"an observed float64 counter":       observedFloat(func(m metric.Meter) (metric.Float64Observable, error) { return m.Float64ObservableCounter("m") }),
	"an observed float64 up-down counter": observedFloat(func(m metric.Meter) (metric.Float64Observable, error) {
		return m.Float64ObservableUpDownCounter("m")
	}),
	"an observed float64 gauge": observedFloat(func(m metric.Meter) (metric.Float64Observable, error) { return m.Float64ObservableGauge("m") }),
}

func addTwice[N int64 | float64](of interface {
	Add(context.Context, N, ...metric.AddOption)
}) {
	of.Add(ctx, 1)
	of.Add(ctx, 1, cause)
}

func recordTwice[N int64 | float64](of interface {
	Record(context.Context, N, ...metric.RecordOption)
}) {
	of.Record(ctx, 1)
	of.Record(ctx, 1, cause)
}

func observedInt(create func(metric.Meter) (metric.Int64Observable, error)) func(metric.Meter) {
	return func(m metric.Meter) {
		of := must(create(m))
		must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			o.ObserveInt64(of, 1)
			o.ObserveInt64(of, 1, cause)
			return nil
		}, of))
	}
}

func observedFloat(create func(metric.Meter) (metric.Float64Observable, error)) func(metric.Meter) {
	return func(m metric.Meter) {
		of := must(create(m))
		must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			o.ObserveFloat64(of, 1)
			o.ObserveFloat64(of, 1, cause)
			return nil
		}, of))
	}
}

// points are the attributes of all points, those of the scope in front.
func points(t testing.TB, reader sdk.Reader) (all []string) {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(ctx, &data))
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, set := range attributes(t, m.Data) {
				all = append(all, scope.Scope.Attributes.Encoded(attribute.DefaultEncoder())+"|"+set.Encoded(attribute.DefaultEncoder()))
			}
		}
	}
	return all
}

func attributes(t testing.TB, data metricdata.Aggregation) []attribute.Set {
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		return setsOf(d.DataPoints, func(p metricdata.DataPoint[int64]) attribute.Set { return p.Attributes })
	case metricdata.Gauge[int64]:
		return setsOf(d.DataPoints, func(p metricdata.DataPoint[int64]) attribute.Set { return p.Attributes })
	case metricdata.Histogram[int64]:
		return setsOf(d.DataPoints, func(p metricdata.HistogramDataPoint[int64]) attribute.Set { return p.Attributes })
	case metricdata.Sum[float64]:
		return setsOf(d.DataPoints, func(p metricdata.DataPoint[float64]) attribute.Set { return p.Attributes })
	case metricdata.Gauge[float64]:
		return setsOf(d.DataPoints, func(p metricdata.DataPoint[float64]) attribute.Set { return p.Attributes })
	case metricdata.Histogram[float64]:
		return setsOf(d.DataPoints, func(p metricdata.HistogramDataPoint[float64]) attribute.Set { return p.Attributes })
	}
	require.Fail(t, "no known points", "%T", data)
	return nil
}

func setsOf[P any](points []P, set func(P) attribute.Set) (sets []attribute.Set) {
	for _, p := range points {
		sets = append(sets, set(p))
	}
	return sets
}

func TestEachPointHasTheComponentsID(t *testing.T) {
	for name, use := range instruments {
		t.Run(name, func(t *testing.T) {
			reader := sdk.NewManualReader()
			provider := sdk.NewMeterProvider(sdk.WithReader(reader))
			use(of("first", provider))
			use(of("second", provider))
			assert.ElementsMatch(t, []string{
				"|receiver=bytefrog/first", "|cause=gap,receiver=bytefrog/first",
				"|receiver=bytefrog/second", "|cause=gap,receiver=bytefrog/second",
			}, points(t, reader))
		})
	}
}

func TestTheIDReplacesSuchAnAttributeOfAPoint(t *testing.T) {
	reader := sdk.NewManualReader()
	counter := must(of("first", sdk.NewMeterProvider(sdk.WithReader(reader))).Int64Counter("m"))
	counter.Add(ctx, 1, metric.WithAttributes(attribute.String("receiver", "another")))
	assert.Equal(t, []string{"|receiver=bytefrog/first"}, points(t, reader))
}

// injected is the Collector's meter provider with telemetry.newPipelineTelemetry.
type injected struct {
	metric.MeterProvider
	keys []string
}

func (i injected) Meter(name string, options ...metric.MeterOption) metric.Meter {
	var all []attribute.KeyValue
	for _, key := range i.keys {
		all = append(all, attribute.String(key, "x"))
	}
	return i.MeterProvider.Meter(name, append(options, metric.WithInstrumentationAttributes(all...))...)
}

func (i injected) DropInjectedAttributes(dropped ...string) metric.MeterProvider {
	var left []string
	for _, key := range i.keys {
		if !slices.Contains(dropped, key) {
			left = append(left, key)
		}
	}
	return injected{i.MeterProvider, left}
}

func TestAComponentOfSeveralPipelinesHasOneScope(t *testing.T) {
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	must(of("first", injected{provider, []string{"otelcol.component.id", "otelcol.pipeline.id", "otelcol.signal"}}).Int64Counter("m")).Add(ctx, 1)
	assert.Equal(t, []string{"otelcol.component.id=x|receiver=bytefrog/first"}, points(t, reader))
}

func TestManySetsOfAttributesAtTheSameTime(t *testing.T) {
	reader := sdk.NewManualReader()
	counter := must(of("first", sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(-1))).Int64Counter("m"))
	const sets, workers = 1_500, 4
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range sets {
				counter.Add(ctx, 1, metric.WithAttributes(attribute.Int("i", i)))
			}
		})
	}
	all.Wait()
	var want []string
	for i := range sets {
		want = append(want, fmt.Sprintf("|i=%d,receiver=bytefrog/first", i))
	}
	assert.ElementsMatch(t, want, points(t, reader))
}

// The identity costs no allocation, with attributes or without.
func TestCountingAllocatesNoMoreThanTheSDK(t *testing.T) {
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
	plain, own := must(provider.Meter("scope").Int64Counter("m")), must(of("first", provider).Int64Counter("m"))
	histogram, ownHistogram := must(provider.Meter("scope").Float64Histogram("h")), must(of("first", provider).Float64Histogram("h"))
	for name, pair := range map[string][2]func(){
		"a counter":                     {func() { plain.Add(ctx, 1) }, func() { own.Add(ctx, 1) }},
		"a counter with an attribute":   {func() { plain.Add(ctx, 1, cause) }, func() { own.Add(ctx, 1, cause) }},
		"a histogram":                   {func() { histogram.Record(ctx, 1) }, func() { ownHistogram.Record(ctx, 1) }},
		"a histogram with an attribute": {func() { histogram.Record(ctx, 1, cause) }, func() { ownHistogram.Record(ctx, 1, cause) }},
	} {
		t.Run(name, func(t *testing.T) {
			assert.LessOrEqual(t, testing.AllocsPerRun(1_000, pair[1]), testing.AllocsPerRun(1_000, pair[0]))
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
	for _, by := range []struct {
		name    string
		counter metric.Int64Counter
	}{
		{"sdk", must(provider.Meter("scope").Int64Counter("m"))},
		{"own", must(of("first", provider).Int64Counter("m"))},
	} {
		b.Run(by.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				by.counter.Add(ctx, 1)
			}
		})
		b.Run(by.name+"_with_attribute", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				by.counter.Add(ctx, 1, cause)
			}
		})
	}
}

func TestEveryOwnMetricIsDescribedWithTheIDOfItsComponent(t *testing.T) {
	files := must(filepath.Glob("../../../*/*/metadata.yaml"))
	require.NotEmpty(t, files)
	for _, file := range files {
		var described struct {
			Status    struct{ Class string }
			Telemetry struct {
				Metrics map[string]struct{ Attributes []string }
			}
		}
		require.NoError(t, yaml.Unmarshal(must(os.ReadFile(file)), &described), file)
		for name, m := range described.Telemetry.Metrics {
			assert.Contains(t, m.Attributes, described.Status.Class, "%s: %s", file, name)
		}
	}
}
