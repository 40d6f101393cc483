// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownmetrics adds the ID of a component to its own metrics, so that two instances of a component have separate
// series.
//
// The attribute is that of the Collector's own metrics, such as those of exporterhelper: it has
// the name of the component's kind, such as receiver, and the ID of the configuration, such as
// lttng_live/second. It belongs to each point, as the Collector shows none of the scope's
// attributes at its Prometheus page.
package ownmetrics

import (
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Of returns the settings for a component's telemetry builder. Each point of their instruments has the component's ID,
// in addition to its own attributes.
func Of(kind component.Kind, id component.ID, settings component.TelemetrySettings) component.TelemetrySettings {
	provider := settings.MeterProvider
	if all, ok := provider.(injecting); ok {
		provider = all.DropInjectedAttributes(injectedPipeline, injectedSignal)
	}
	settings.MeterProvider = meterProvider{provider, newIdentity(attribute.String(strings.ToLower(kind.String()), id.String()))}
	return settings
}

// injecting are the Collector's meter providers with the feature gate
// telemetry.newPipelineTelemetry. Their instruments have a scope for each pipeline, or signal,
// of a component. A component that several of them use would have several series with the same
// labels, and Prometheus' page would be an error for all components.
type injecting interface {
	DropInjectedAttributes(keys ...string) metric.MeterProvider
}

const (
	injectedPipeline = "otelcol.pipeline.id"
	injectedSignal   = "otelcol.signal"
)

type meterProvider struct {
	metric.MeterProvider
	identity *identity
}

func (p meterProvider) Meter(name string, options ...metric.MeterOption) metric.Meter {
	return meter{p.MeterProvider.Meter(name, options...), p.identity}
}
