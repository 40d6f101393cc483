// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/metadatatest"
	"github.com/callbraid/callbraid/internal/componentkit/sharedexporter"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

const prefix = "otelcol_exporter_perfetto_"

// bed is an exporter with its telemetry and log.
type bed struct {
	*perfetto
	signal    *sharedexporter.Signal[*perfetto]
	telemetry *componenttest.Telemetry
	log       *observer.ObservedLogs
}

func newBed(t testing.TB, path string, changes ...func(*Config)) *bed {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Path = path
	for _, change := range changes {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	b := &bed{telemetry: componenttest.NewTelemetry()}
	set := metadatatest.NewSettings(b.telemetry)
	core, log := observer.New(zap.DebugLevel)
	set.Logger, b.log = zap.New(core), log
	var err error
	b.signal, err = newExporters().Signal(set, cfg)
	require.NoError(t, err)
	b.perfetto = b.signal.Exporter
	t.Cleanup(func() {
		require.NoError(t, b.signal.Shutdown(context.Background()))
		require.NoError(t, b.telemetry.Shutdown(context.Background()))
	})
	return b
}

func started(t testing.TB, path string, changes ...func(*Config)) *bed {
	t.Helper()
	b := newBed(t, path, changes...)
	require.NoError(t, b.signal.Start(t.Context(), componenttest.NewNopHost()))
	return b
}

// flushed writes the chunk.
func (b *bed) flushed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flush()
}

// counts are the metrics.
func (b *bed) counts(t testing.TB) map[string]int64 {
	t.Helper()
	return telemetrytest.Points(t, b.telemetry, prefix)
}

// lines are the messages of the log, without what follows a comma.
func (b *bed) lines() (lines []string) {
	for _, entry := range b.log.All() {
		lines = append(lines, strings.Split(entry.Message, ",")[0])
	}
	return lines
}

func newFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "spans.perfetto-trace")
}

// files are the paths of all files of a path, the current one last.
func files(t testing.TB, path string) []string {
	t.Helper()
	backups, err := filepath.Glob(strings.TrimSuffix(path, ".perfetto-trace") + "-*")
	require.NoError(t, err)
	return append(backups, path)
}

// readAll reads all files of a path, each alone.
func readAll(t testing.TB, path string) (all []*perfettofile.Trace) {
	t.Helper()
	for _, file := range files(t, path) {
		read, err := perfettofile.Open(file)
		require.NoError(t, err)
		all = append(all, read)
	}
	return all
}

// names are those of all slices in all files.
func names(t testing.TB, path string) (all []string) {
	t.Helper()
	for _, read := range readAll(t, path) {
		for _, s := range read.Slices {
			all = append(all, s.Name)
		}
	}
	return all
}

// message is a message of one resource with spans.
func message(service string, spans ...func(ptrace.Span)) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	ss := rs.ScopeSpans().AppendEmpty()
	for _, fill := range spans {
		fill(ss.Spans().AppendEmpty())
	}
	return td
}

// span is a span by its own number, that of its parent, and its times.
func span(id, parent byte, start, end uint64, changes ...func(ptrace.Span)) func(ptrace.Span) {
	return func(s ptrace.Span) {
		s.SetName(string('a' + rune(id)%26))
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{id})
		if parent != 0 {
			s.SetParentSpanID(pcommon.SpanID{parent})
		}
		s.SetStartTimestamp(pcommon.Timestamp(start))
		s.SetEndTimestamp(pcommon.Timestamp(end))
		for _, change := range changes {
			change(s)
		}
	}
}

func inThread(id int64, name string) func(ptrace.Span) {
	return func(s ptrace.Span) {
		s.Attributes().PutInt("thread.id", id)
		s.Attributes().PutStr("thread.name", name)
	}
}
