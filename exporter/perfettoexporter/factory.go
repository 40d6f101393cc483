// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/metadata"
	"github.com/callbraid/callbraid/internal/componentkit/sharedexporter"
)

// NewFactory makes the factory of the exporter.
func NewFactory() exporter.Factory {
	all := newExporters()
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(all.createTraces, metadata.TracesStability),
		exporter.WithMetrics(all.createMetrics, metadata.MetricsStability),
		exporter.WithLogs(all.createLogs, metadata.LogsStability),
	)
}

// exporters are the exporters of a factory.
type exporters struct {
	sharedexporter.Exporters[*perfetto]
}

func newExporters() *exporters {
	return &exporters{sharedexporter.Exporters[*perfetto]{Make: func(set exporter.Settings, cfg component.Config) (*perfetto, error) {
		return newPerfetto(set, cfg.(*Config))
	}}}
}

// options are those of one signal. There is no queue, because the exporter refuses nothing and needs little time.
func options(s *sharedexporter.Signal[*perfetto]) []exporterhelper.Option {
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

func (all *exporters) createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewMetrics(ctx, set, cfg, s.Exporter.consumeMetrics, options(s)...)
}

func (all *exporters) createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewLogs(ctx, set, cfg, s.Exporter.consumeLogs, options(s)...)
}
