// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/componentkit/nesting"
)

// lineStarts are how lines begin, by signal; those without content are {}.
var lineStarts = []string{`{"resourceSpans":`, `{"resourceLogs":`, `{"resourceMetrics":`, `{"resourceProfiles":`, `{"dictionary":`, "{}\n"}

// The Collector's marshalers go into attributes by recursion, so each hand-over is checked
// before.

func (e *fileExporter) consumeTraces(ctx context.Context, td ptrace.Traces) error {
	return e.write(ctx, func() ([]byte, error) {
		if err := nesting.Traces(td, e.config.MaxAttributeDepth); err != nil {
			return nil, tooDeep(err)
		}
		return new(ptrace.JSONMarshaler).MarshalTraces(td)
	})
}

func (e *fileExporter) consumeLogs(ctx context.Context, ld plog.Logs) error {
	return e.write(ctx, func() ([]byte, error) {
		if err := nesting.Logs(ld, e.config.MaxAttributeDepth); err != nil {
			return nil, tooDeep(err)
		}
		return new(plog.JSONMarshaler).MarshalLogs(ld)
	})
}

func (e *fileExporter) consumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return e.write(ctx, func() ([]byte, error) {
		if err := nesting.Metrics(md, e.config.MaxAttributeDepth); err != nil {
			return nil, tooDeep(err)
		}
		return new(pmetric.JSONMarshaler).MarshalMetrics(md)
	})
}

func (e *fileExporter) consumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	return e.write(ctx, func() ([]byte, error) {
		if err := nesting.Profiles(pd, e.config.MaxAttributeDepth); err != nil {
			return nil, tooDeep(err)
		}
		return new(pprofile.JSONMarshaler).MarshalProfiles(pd)
	})
}

func tooDeep(err error) error {
	return fmt.Errorf("%w: flatten the attribute, or raise max_attribute_depth of otlp_json_file", err)
}
