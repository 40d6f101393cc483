// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/exporter/otlpjsonfileexporter/internal/metadata"
)

// NewFactory makes the factory of the exporter. It also accepts profiles, which pipelines have if
// the collector's feature gate service.profilesSupport is on.
func NewFactory() exporter.Factory {
	all := shared{made: map[*Config]*fileExporter{}}
	return xexporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xexporter.WithTraces(all.createTraces, metadata.TracesStability),
		xexporter.WithLogs(all.createLogs, metadata.LogsStability),
		xexporter.WithMetrics(all.createMetrics, metadata.MetricsStability),
		xexporter.WithProfiles(all.createProfiles, metadata.ProfilesStability),
	)
}

// options are those of one signal of the exporter.
func (e *fileExporter) options() []exporterhelper.Option {
	s := e.newSignal()
	options := []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(e.config.TimeoutConfig),
		exporterhelper.WithRetry(e.config.RetryConfig),
		exporterhelper.WithStart(s.start),
		exporterhelper.WithShutdown(s.shutdown),
	}
	if e.config.QueueConfig.HasValue() {
		options = append(options, exporterhelper.WithQueue(e.config.QueueConfig))
	}
	return options
}

// withoutEcho returns settings without the log lines of the Collector's part of the exporter.
// Without a queue and retries it logs a line for each refused hand-over, which reports the data as
// rejected. But the exporter logs a burst of them once, and the caller still has the data.
func (e *fileExporter) withoutEcho(set exporter.Settings) exporter.Settings {
	if !e.config.QueueConfig.HasValue() && !e.config.RetryConfig.Enabled {
		set.Logger = zap.NewNop()
	}
	return set
}

func (s *shared) createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := s.exporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, e.withoutEcho(set), cfg, e.consumeTraces, e.options()...)
}

func (s *shared) createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	e, err := s.exporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewLogs(ctx, e.withoutEcho(set), cfg, e.consumeLogs, e.options()...)
}

func (s *shared) createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := s.exporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewMetrics(ctx, e.withoutEcho(set), cfg, e.consumeMetrics, e.options()...)
}

func (s *shared) createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	e, err := s.exporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return xexporterhelper.NewProfiles(ctx, e.withoutEcho(set), cfg, e.consumeProfiles, e.options()...)
}
