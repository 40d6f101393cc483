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
)

// NewFactory makes the factory of the exporter.
func NewFactory() exporter.Factory {
	all := shared{made: map[*Config]*perfetto{}}
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(all.createTraces, metadata.TracesStability),
		exporter.WithMetrics(all.createMetrics, metadata.MetricsStability),
		exporter.WithLogs(all.createLogs, metadata.LogsStability),
	)
}

// options are those of one signal. There is no queue, because the exporter refuses nothing and needs little time.
func (e *perfetto) options() []exporterhelper.Option {
	s := e.newSignal()
	return []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(s.start),
		exporterhelper.WithShutdown(s.shutdown),
	}
}

func (s *shared) createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := s.exporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, set, cfg, e.consumeTraces, e.options()...)
}

func (s *shared) createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := s.exporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewMetrics(ctx, set, cfg, e.consumeMetrics, e.options()...)
}

func (s *shared) createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	e, err := s.exporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewLogs(ctx, set, cfg, e.consumeLogs, e.options()...)
}
