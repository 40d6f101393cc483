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
		xexporter.WithLogs(all.createLogs, metadata.LogsStability),
		xexporter.WithMetrics(all.createMetrics, metadata.MetricsStability),
		xexporter.WithProfiles(all.createProfiles, metadata.ProfilesStability),
	)
}

// exporters are the exporters of a factory.
type exporters struct {
	sharedexporter.Exporters[*fileExporter]
}

func newExporters() *exporters {
	return &exporters{sharedexporter.Exporters[*fileExporter]{Make: func(set exporter.Settings, cfg component.Config) (*fileExporter, error) {
		return newFileExporter(set, cfg.(*Config))
	}}}
}

// options are those of one signal of the exporter.
func options(s *sharedexporter.Signal[*fileExporter]) []exporterhelper.Option {
	e := s.Exporter
	options := []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(e.config.TimeoutConfig),
		exporterhelper.WithRetry(e.config.RetryConfig),
		exporterhelper.WithStart(s.Start),
		exporterhelper.WithShutdown(s.Shutdown),
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

func (all *exporters) createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, s.Exporter.withoutEcho(set), cfg, s.Exporter.consumeTraces, options(s)...)
}

func (all *exporters) createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewLogs(ctx, s.Exporter.withoutEcho(set), cfg, s.Exporter.consumeLogs, options(s)...)
}

func (all *exporters) createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewMetrics(ctx, s.Exporter.withoutEcho(set), cfg, s.Exporter.consumeMetrics, options(s)...)
}

func (all *exporters) createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	s, err := all.Signal(set, cfg)
	if err != nil {
		return nil, err
	}
	return xexporterhelper.NewProfiles(ctx, s.Exporter.withoutEcho(set), cfg, s.Exporter.consumeProfiles, options(s)...)
}
