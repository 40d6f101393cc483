// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
)

// NewFactory makes the factory of the exporter. It also accepts profiles, which pipelines have if
// the collector's feature gate service.profilesSupport is on.
func NewFactory() exporter.Factory {
	all := shared{made: map[*Config]*flameGraph{}}
	return xexporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xexporter.WithTraces(all.createTraces, metadata.TracesStability),
		xexporter.WithProfiles(all.createProfiles, metadata.ProfilesStability),
	)
}

// options are those of both signals. There is no queue, because the exporter refuses nothing and
// needs little time.
func (g *flameGraph) options() []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(g.start),
		exporterhelper.WithShutdown(g.shutdown),
	}
}

func (s *shared) createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	g, err := s.graph(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, set, cfg, g.consumeTraces, g.options()...)
}

func (s *shared) createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	g, err := s.graph(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return xexporterhelper.NewProfiles(ctx, set, cfg, g.consumeProfiles, g.options()...)
}
