// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ownmetrics

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
)

// meter makes instruments whose points have the identity. Observable instruments are the SDK's own,
// because it accepts no others: their callbacks get an observer that adds the identity.
type meter struct {
	metric.Meter
	identity *identity
}

func (m meter) Int64Counter(name string, options ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	of, err := m.Meter.Int64Counter(name, options...)
	return counter[int64]{of: of, identity: m.identity}, err
}

func (m meter) Int64UpDownCounter(name string, options ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	of, err := m.Meter.Int64UpDownCounter(name, options...)
	return counter[int64]{of: of, identity: m.identity}, err
}

func (m meter) Int64Histogram(name string, options ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	of, err := m.Meter.Int64Histogram(name, options...)
	return recorder[int64]{of: of, identity: m.identity}, err
}

func (m meter) Int64Gauge(name string, options ...metric.Int64GaugeOption) (metric.Int64Gauge, error) {
	of, err := m.Meter.Int64Gauge(name, options...)
	return recorder[int64]{of: of, identity: m.identity}, err
}

func (m meter) Float64Counter(name string, options ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	of, err := m.Meter.Float64Counter(name, options...)
	return counter[float64]{of: of, identity: m.identity}, err
}

func (m meter) Float64UpDownCounter(name string, options ...metric.Float64UpDownCounterOption) (metric.Float64UpDownCounter, error) {
	of, err := m.Meter.Float64UpDownCounter(name, options...)
	return counter[float64]{of: of, identity: m.identity}, err
}

func (m meter) Float64Histogram(name string, options ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	of, err := m.Meter.Float64Histogram(name, options...)
	return recorder[float64]{of: of, identity: m.identity}, err
}

func (m meter) Float64Gauge(name string, options ...metric.Float64GaugeOption) (metric.Float64Gauge, error) {
	of, err := m.Meter.Float64Gauge(name, options...)
	return recorder[float64]{of: of, identity: m.identity}, err
}

func (m meter) RegisterCallback(f metric.Callback, instruments ...metric.Observable) (metric.Registration, error) {
	return m.Meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		return f(ctx, observer{o, m.identity})
	}, instruments...)
}

// counter is a counter, or a counter that can decrease, of any number type.
type counter[N int64 | float64] struct {
	embedded.Int64Counter
	embedded.Int64UpDownCounter
	embedded.Float64Counter
	embedded.Float64UpDownCounter
	of interface {
		Add(context.Context, N, ...metric.AddOption)
		Enabled(context.Context) bool
	}
	identity *identity
}

func (c counter[N]) Add(ctx context.Context, n N, options ...metric.AddOption) {
	c.of.Add(ctx, n, c.identity.add(options)...)
}

func (c counter[N]) Enabled(ctx context.Context) bool { return c.of.Enabled(ctx) }

// recorder is a histogram or a gauge of any number type.
type recorder[N int64 | float64] struct {
	embedded.Int64Histogram
	embedded.Int64Gauge
	embedded.Float64Histogram
	embedded.Float64Gauge
	of interface {
		Record(context.Context, N, ...metric.RecordOption)
		Enabled(context.Context) bool
	}
	identity *identity
}

func (r recorder[N]) Record(ctx context.Context, n N, options ...metric.RecordOption) {
	r.of.Record(ctx, n, r.identity.record(options)...)
}

func (r recorder[N]) Enabled(ctx context.Context) bool { return r.of.Enabled(ctx) }

type observer struct {
	metric.Observer
	identity *identity
}

func (o observer) ObserveInt64(of metric.Int64Observable, n int64, options ...metric.ObserveOption) {
	o.Observer.ObserveInt64(of, n, o.identity.observe(options)...)
}

func (o observer) ObserveFloat64(of metric.Float64Observable, n float64, options ...metric.ObserveOption) {
	o.Observer.ObserveFloat64(of, n, o.identity.observe(options)...)
}
