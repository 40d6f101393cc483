// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ownmetrics

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// meter makes instruments whose points have the identity. Instruments that are observed are the
// SDK's own, because it takes no others: their callbacks get an observer that adds the identity.
type meter struct {
	metric.Meter
	identity *identity
}

func (m meter) Int64Counter(name string, options ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	of, err := m.Meter.Int64Counter(name, options...)
	return int64Counter{of, m.identity}, err
}

func (m meter) Int64UpDownCounter(name string, options ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	of, err := m.Meter.Int64UpDownCounter(name, options...)
	return int64UpDownCounter{of, m.identity}, err
}

func (m meter) Int64Histogram(name string, options ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	of, err := m.Meter.Int64Histogram(name, options...)
	return int64Histogram{of, m.identity}, err
}

func (m meter) Int64Gauge(name string, options ...metric.Int64GaugeOption) (metric.Int64Gauge, error) {
	of, err := m.Meter.Int64Gauge(name, options...)
	return int64Gauge{of, m.identity}, err
}

func (m meter) Float64Counter(name string, options ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	of, err := m.Meter.Float64Counter(name, options...)
	return float64Counter{of, m.identity}, err
}

func (m meter) Float64UpDownCounter(name string, options ...metric.Float64UpDownCounterOption) (metric.Float64UpDownCounter, error) {
	of, err := m.Meter.Float64UpDownCounter(name, options...)
	return float64UpDownCounter{of, m.identity}, err
}

func (m meter) Float64Histogram(name string, options ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	of, err := m.Meter.Float64Histogram(name, options...)
	return float64Histogram{of, m.identity}, err
}

func (m meter) Float64Gauge(name string, options ...metric.Float64GaugeOption) (metric.Float64Gauge, error) {
	of, err := m.Meter.Float64Gauge(name, options...)
	return float64Gauge{of, m.identity}, err
}

func (m meter) RegisterCallback(f metric.Callback, instruments ...metric.Observable) (metric.Registration, error) {
	return m.Meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		return f(ctx, observer{o, m.identity})
	}, instruments...)
}

type int64Counter struct {
	metric.Int64Counter
	identity *identity
}

func (c int64Counter) Add(ctx context.Context, n int64, options ...metric.AddOption) {
	c.Int64Counter.Add(ctx, n, c.identity.add(options)...)
}

type int64UpDownCounter struct {
	metric.Int64UpDownCounter
	identity *identity
}

func (c int64UpDownCounter) Add(ctx context.Context, n int64, options ...metric.AddOption) {
	c.Int64UpDownCounter.Add(ctx, n, c.identity.add(options)...)
}

type int64Histogram struct {
	metric.Int64Histogram
	identity *identity
}

func (h int64Histogram) Record(ctx context.Context, n int64, options ...metric.RecordOption) {
	h.Int64Histogram.Record(ctx, n, h.identity.record(options)...)
}

type int64Gauge struct {
	metric.Int64Gauge
	identity *identity
}

func (g int64Gauge) Record(ctx context.Context, n int64, options ...metric.RecordOption) {
	g.Int64Gauge.Record(ctx, n, g.identity.record(options)...)
}

type float64Counter struct {
	metric.Float64Counter
	identity *identity
}

func (c float64Counter) Add(ctx context.Context, n float64, options ...metric.AddOption) {
	c.Float64Counter.Add(ctx, n, c.identity.add(options)...)
}

type float64UpDownCounter struct {
	metric.Float64UpDownCounter
	identity *identity
}

func (c float64UpDownCounter) Add(ctx context.Context, n float64, options ...metric.AddOption) {
	c.Float64UpDownCounter.Add(ctx, n, c.identity.add(options)...)
}

type float64Histogram struct {
	metric.Float64Histogram
	identity *identity
}

func (h float64Histogram) Record(ctx context.Context, n float64, options ...metric.RecordOption) {
	h.Float64Histogram.Record(ctx, n, h.identity.record(options)...)
}

type float64Gauge struct {
	metric.Float64Gauge
	identity *identity
}

func (g float64Gauge) Record(ctx context.Context, n float64, options ...metric.RecordOption) {
	g.Float64Gauge.Record(ctx, n, g.identity.record(options)...)
}

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
