// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/exporter/otlpjsonfileexporter/internal/metadatatest"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

const prefix = "otelcol_exporter_otlp_json_file_"

// bed is an exporter of traces with its telemetry and log.
type bed struct {
	exporter.Traces
	factory   *exporters
	shared    *fileExporter
	cfg       *Config
	set       exporter.Settings
	telemetry *componenttest.Telemetry
	log       *observer.ObservedLogs
}

func newBed(t testing.TB, path string, changes ...func(*Config)) *bed {
	t.Helper()
	b := &bed{telemetry: componenttest.NewTelemetry(), cfg: createDefaultConfig().(*Config), factory: newExporters()}
	b.cfg.Path = path
	for _, change := range changes {
		change(b.cfg)
	}
	require.NoError(t, b.cfg.Validate())
	b.set = metadatatest.NewSettings(b.telemetry)
	core, log := observer.New(zap.DebugLevel)
	b.set.Logger, b.log = zap.New(core), log
	var err error
	b.Traces, err = b.factory.createTraces(t.Context(), b.set, b.cfg)
	require.NoError(t, err)
	another, err := b.factory.Signal(b.set, b.cfg)
	require.NoError(t, err)
	b.shared = another.Exporter
	require.NoError(t, another.Shutdown(t.Context()))
	t.Cleanup(func() {
		if b.factory.Len() > 0 { // the Collector's retries can't be shut down twice
			require.NoError(t, b.Shutdown(context.Background()))
		}
		require.NoError(t, b.telemetry.Shutdown(context.Background()))
	})
	return b
}

func started(t testing.TB, path string, changes ...func(*Config)) *bed {
	t.Helper()
	b := newBed(t, path, changes...)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	return b
}

// counts are the metrics.
func (b *bed) counts(t testing.TB) map[string]int64 {
	t.Helper()
	return telemetrytest.Points(t, b.telemetry, prefix)
}

// lines are those of the log, in their order.
func (b *bed) lines() (lines []string) {
	for _, entry := range b.log.All() {
		lines = append(lines, strings.TrimSpace(strings.Split(entry.Message, ",")[0]))
	}
	return lines
}

func newFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "spans.json")
}

// spans returns so many spans, whose names have a common beginning.
func spans(name string, count int) ptrace.Traces {
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for n := range count {
		all.AppendEmpty().SetName(fmt.Sprint(name, "-", n))
	}
	td.MarkReadOnly()
	return td
}

// handOvers are those of the lines of all files of a path, which have to be whole.
func handOvers(t testing.TB, path string) (all []ptrace.Traces) {
	t.Helper()
	files, err := filepath.Glob(strings.TrimSuffix(path, ".json") + "*.json")
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			require.True(t, strings.HasSuffix(line, "\n"), "%s: the last line is torn", file)
			td, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(line))
			require.NoError(t, err, "%s: %.200s", file, line)
			all = append(all, td)
		}
	}
	return all
}

// names are those of all spans in the lines, each of which is there once.
func names(t testing.TB, path string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, td := range handOvers(t, path) {
		for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			require.False(t, found[span.Name()], "%s is there twice", span.Name())
			found[span.Name()] = true
		}
	}
	return found
}
