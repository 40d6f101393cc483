// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"weak"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
)

// NewFactory returns the factory of the stack_pairing connector.
func NewFactory() connector.Factory {
	all := shared{made: map[weak.Pointer[Config]]weak.Pointer[pairer]{}}
	return xconnector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xconnector.WithTracesToTraces(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Traces, error) {
			return all.input(set, cfg.(*Config), true, func(p *pairer) { p.traces = next })
		}, metadata.TracesToTracesStability),
		xconnector.WithTracesToMetrics(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
			return all.input(set, cfg.(*Config), false, func(p *pairer) { p.metrics.signal = toMetrics(next) })
		}, metadata.TracesToMetricsStability),
		xconnector.WithTracesToProfiles(func(_ context.Context, set connector.Settings, cfg component.Config, next xconsumer.Profiles) (connector.Traces, error) {
			return all.input(set, cfg.(*Config), false, func(p *pairer) { p.profiles.signal = toProfiles(next) })
		}, metadata.TracesToProfilesStability),
	)
}
