// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// lineStarts are how lines begin, by signal; those without content are {}.
var lineStarts = []string{`{"resourceSpans":`, `{"resourceLogs":`, `{"resourceMetrics":`, `{"resourceProfiles":`, `{"dictionary":`, "{}\n"}

// The Collector's marshalers go into attributes by recursion. What comes from outside has to
// be refused above a depth before it is here. A check of a depth in the exporter itself belongs
// into the functions that are passed to write, before the marshalling: their errors are permanent.

func (e *fileExporter) consumeTraces(ctx context.Context, td ptrace.Traces) error {
	return e.write(ctx, func() ([]byte, error) { return new(ptrace.JSONMarshaler).MarshalTraces(td) })
}

func (e *fileExporter) consumeLogs(ctx context.Context, ld plog.Logs) error {
	return e.write(ctx, func() ([]byte, error) { return new(plog.JSONMarshaler).MarshalLogs(ld) })
}

func (e *fileExporter) consumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return e.write(ctx, func() ([]byte, error) { return new(pmetric.JSONMarshaler).MarshalMetrics(md) })
}

func (e *fileExporter) consumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	return e.write(ctx, func() ([]byte, error) { return new(pprofile.JSONMarshaler).MarshalProfiles(pd) })
}
