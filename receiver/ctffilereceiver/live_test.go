// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/lttng/sim/usttrace"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver"
)

// output has the log records and the spans of a recording.
type output struct {
	logs  receivertestbed.Logs
	spans consumertest.TracesSink
}

// pairing returns a stack_pairing processor in front of the spans.
func (o *output) pairing(t *testing.T) (next consumer.Traces, finish func()) {
	t.Helper()
	factory := stackpairingprocessor.NewFactory()
	p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), &o.spans)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	return p, func() { require.NoError(t, p.Shutdown(context.Background())) }
}

// texts returns each record and each span as a text, with its resource, but without the name of the receiver and the
// time of reading.
func (o *output) texts() (records, spans []string) {
	for _, logs := range o.logs.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, r := range scope.LogRecords().All() {
					r.SetObservedTimestamp(0)
					records = append(records, text(resource.Resource().Attributes().AsRaw(), r.Timestamp(), r.EventName(), r.Body().AsString(), r.SeverityText(), r.Attributes().AsRaw()))
				}
			}
		}
	}
	for _, traces := range o.spans.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					spans = append(spans, spanText(resource.Resource().Attributes().AsRaw(), s))
				}
			}
		}
	}
	// Batches begin and end at other events, and have their records by resource.
	slices.Sort(records)
	slices.Sort(spans)
	return records, spans
}

func text(values ...any) string { return fmt.Sprintln(values...) }

func spanText(resource map[string]any, s ptrace.Span) string {
	return text(resource, s.TraceID(), s.SpanID(), s.ParentSpanID(), s.Name(), s.StartTimestamp(), s.EndTimestamp(), s.Attributes().AsRaw(), s.Status().Code())
}

// fromFiles returns the output of a directory, read by ctf_file.
func fromFiles(t *testing.T, dir string) *output {
	t.Helper()
	o := new(output)
	pairing, finish := o.pairing(t)
	readAll(t, dir, func(b *bed, _ *Config) { b.Next.Traces, b.Next.Logs = pairing, &o.logs })
	finish()
	return o
}

// fromRelay returns the output of the same directory, served by a relay daemon and read by lttng_live.
func fromRelay(t *testing.T, dir string, session string) *output {
	t.Helper()
	source, err := lttngrelay.FromDirectory(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, source.Close()) }()
	require.NoError(t, source.Name("", session))
	server, err := lttngrelay.NewServer(source, lttngrelay.Options{})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { assert.NoError(t, server.Serve(ctx, listener)) })
	defer serving.Wait()
	defer end()

	o := new(output)
	pairing, finish := o.pairing(t)
	factory := lttnglivereceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*lttnglivereceiver.Config)
	config.Endpoint, config.SymbolPaths = listener.Addr().String(), nil
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(t.Context(), settings, config, pairing)
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), settings, config, &o.logs)
	require.NoError(t, err)
	require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	records := func(of plog.Logs) int { return of.LogRecordCount() }
	require.True(t, testkit.Happens(func() bool {
		n := 0
		for _, l := range o.logs.AllLogs() {
			n += records(l)
		}
		return n >= int(source.Events)
	}))
	require.NoError(t, traces.Shutdown(context.Background()))
	require.NoError(t, logs.Shutdown(context.Background()))
	finish()
	return o
}

// copyCapture copies the recorded traces of a capture into a directory.
func copyCapture(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, lttngdata.OpenCapture(t, name)))
	return filepath.Join(dir, "ctf")
}

func TestARecordingHasTheOutputOfItsLiveSession(t *testing.T) {
	for name, dir := range map[string]func(t *testing.T) string{
		"a program with two processes": func(t *testing.T) string {
			dir := t.TempDir()
			_, err := usttrace.Write(dir, usttrace.Options{Events: 20_000, Contexts: true})
			require.NoError(t, err)
			return dir
		},
		"a C program": func(t *testing.T) string { return copyCapture(t, "cygok") },
		"discarded":   func(t *testing.T) string { return copyCapture(t, "cyg1") },
		"Java":        func(t *testing.T) string { return copyCapture(t, "jul1") },
		"contexts":    func(t *testing.T) string { return copyCapture(t, "julctx") },
		"tracepoints": func(t *testing.T) string { return copyCapture(t, "tp1") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := dir(t)
			files := fromFiles(t, dir)
			records, spans := files.texts()
			require.NotEmpty(t, records)
			session, _ := files.logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get("lttng.session.name")
			liveRecords, liveSpans := fromRelay(t, dir, session.AsString()).texts()
			require.Equal(t, len(liveRecords), len(records))
			for i := range records {
				require.Equal(t, liveRecords[i], records[i], "record %d", i)
			}
			t.Log(len(records), len(spans))
			require.Equal(t, len(liveSpans), len(spans))
			for i := range spans {
				require.Equal(t, liveSpans[i], spans[i], "span %d", i)
			}
		})
	}
}
