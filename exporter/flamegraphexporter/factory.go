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
	"github.com/callbraid/callbraid/internal/componentkit/sharedexporter"
)

// NewFactory makes the factory of the exporter. It also accepts profiles, which pipelines have if
// the collector's feature gate service.profilesSupport is on.
func NewFactory() exporter.Factory {
	all := newExporters()
	return xexporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xexporter.WithTraces(all.createTraces, metadata.TracesStability),
		xexporter.WithProfiles(all.createProfiles, metadata.ProfilesStability),
	)
}

// exporters are the exporters of a factory: one for each configuration, for all its signals.
type exporters struct {
	sharedexporter.Exporters[*flameGraph]
}

func newExporters() *exporters {
	return &exporters{sharedexporter.Exporters[*flameGraph]{Make: func(set exporter.Settings, cfg component.Config) (*flameGraph, error) {
		return newFlameGraph(set, cfg.(*Config))
	}}}
}

// options are those of one signal. There is no queue, because the exporter refuses nothing and
// needs little time.
func options(s *sharedexporter.Signal[*flameGraph]) []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(s.Start),
		exporterhelper.WithShutdown(s.Shutdown),
	}
}

func (all *exporters) createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, set, cfg, s.Exporter.consumeTraces, options(s)...)
}

func (all *exporters) createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return xexporterhelper.NewProfiles(ctx, set, cfg, s.Exporter.consumeProfiles, options(s)...)
}
