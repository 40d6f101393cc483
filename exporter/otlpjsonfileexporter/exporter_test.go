// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// someProfiles have something in all of their parts.
func someProfiles() pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "cpu")
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty().Values().Append(3)
	return pd
}

func TestAllSignalsShareAFileAndItsLinesAreOTLP(t *testing.T) {
	ctx, path := t.Context(), newFile(t)
	b := started(t, path)
	logs, err := b.factory.createLogs(ctx, b.set, b.cfg)
	require.NoError(t, err)
	metrics, err := b.factory.createMetrics(ctx, b.set, b.cfg)
	require.NoError(t, err)
	profiles, err := b.factory.createProfiles(ctx, b.set, b.cfg)
	require.NoError(t, err)
	for _, c := range []component.Component{logs, metrics, profiles} {
		require.NoError(t, c.Start(ctx, componenttest.NewNopHost()))
	}
	td, ld, md, pd := spans("a", 2), plog.NewLogs(), pmetric.NewMetrics(), someProfiles()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("two\nlines \xff \u2028 and more")
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetName("m")
	require.NoError(t, b.ConsumeTraces(ctx, td))
	require.NoError(t, logs.ConsumeLogs(ctx, ld))
	require.NoError(t, metrics.ConsumeMetrics(ctx, md))
	require.NoError(t, profiles.ConsumeProfiles(ctx, pd))

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"lines": 4, "bytes": int64(len(content))}, b.counts(t), "lines are in the kernel before the hand-over returns")
	lines := strings.SplitAfter(string(content), "\n")
	require.Len(t, lines, 5)
	for i, line := range lines[:4] {
		assert.True(t, strings.HasPrefix(line, lineStarts[i]), line)
	}
	gotTraces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(lines[0]))
	require.NoError(t, err)
	assert.Equal(t, td.SpanCount(), gotTraces.SpanCount())
	gotLogs, err := new(plog.JSONUnmarshaler).UnmarshalLogs([]byte(lines[1]))
	require.NoError(t, err)
	assert.Equal(t, 1, gotLogs.LogRecordCount())
	gotMetrics, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics([]byte(lines[2]))
	require.NoError(t, err)
	assert.Equal(t, md, gotMetrics)
	gotProfiles, err := new(pprofile.JSONUnmarshaler).UnmarshalProfiles([]byte(lines[3]))
	require.NoError(t, err)
	assert.Equal(t, 1, gotProfiles.SampleCount())

	// The file is open until the last signal is shut down, in any order.
	for _, c := range []component.Component{logs, logs, metrics, profiles} {
		require.NoError(t, c.Shutdown(ctx))
	}
	require.NoError(t, b.ConsumeTraces(ctx, td))
	require.NoError(t, b.Shutdown(ctx))
	assert.ErrorContains(t, b.ConsumeTraces(ctx, td), "shut down")
	assert.Zero(t, b.factory.Len(), "a reload makes another")
	next := started(t, path)
	require.NoError(t, next.ConsumeTraces(ctx, td), "a reload continues the file")
}

func TestEveryBeginningOfALineIsKnownAtTheNextStart(t *testing.T) {
	for name, encode := range map[string]func() ([]byte, error){
		"traces":   func() ([]byte, error) { return new(ptrace.JSONMarshaler).MarshalTraces(spans("a", 1)) },
		"profiles": func() ([]byte, error) { return new(pprofile.JSONMarshaler).MarshalProfiles(someProfiles()) },
		"a dictionary alone": func() ([]byte, error) {
			pd := someProfiles()
			pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
			return new(pprofile.JSONMarshaler).MarshalProfiles(pd)
		},
		"nothing": func() ([]byte, error) { return new(plog.JSONMarshaler).MarshalLogs(plog.NewLogs()) },
	} {
		t.Run(name, func(t *testing.T) {
			text, err := encode()
			require.NoError(t, err)
			path := newFile(t)
			require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o600))
			b := started(t, path)
			assert.Empty(t, b.lines())
		})
	}
}

func TestTwoExportersOfAPathAreRefused(t *testing.T) {
	path := newFile(t)
	started(t, path)
	other := newBed(t, filepath.Join(filepath.Dir(path), ".", "spans.json"))
	assert.ErrorContains(t, other.Start(t.Context(), componenttest.NewNopHost()), "another exporter or collector writes to "+path)
}

func TestSignalsCanBeShutDownWithoutStart(t *testing.T) {
	factory, cfg := NewFactory(), createDefaultConfig()
	cfg.(*Config).Path = newFile(t)
	traces, err := factory.CreateTraces(t.Context(), exportertest.NewNopSettings(typ), cfg)
	require.NoError(t, err)
	profiles, err := factory.(xexporter.Factory).CreateProfiles(t.Context(), exportertest.NewNopSettings(typ), cfg)
	require.NoError(t, err)
	require.NoError(t, traces.Shutdown(t.Context()))
	require.NoError(t, profiles.Shutdown(t.Context()))
	assert.NoFileExists(t, cfg.(*Config).Path)
}

func TestATornLineIsCutCountedAndLogged(t *testing.T) {
	path := newFile(t)
	require.NoError(t, os.WriteFile(path, []byte("{}\n"+`{"resourceSpans":[`), 0o600))
	b := started(t, path)
	require.NoError(t, b.ConsumeTraces(t.Context(), spans("a", 1)))
	assert.Len(t, handOvers(t, path), 2)
	assert.EqualValues(t, len(`{"resourceSpans":[`), b.counts(t)["repaired_bytes"])
	require.Equal(t, []string{"Cut a torn line off the end of the file. The process that wrote it ended before the line was whole"}, b.lines())
	assert.Equal(t, map[string]any{"path": path, "offset": int64(3), "dropped_bytes": int64(18)}, b.log.All()[0].ContextMap())
}

func TestRefusalsAreCountedAndLoggedOnce(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(directory, "spans.json")
	b := started(t, path, func(c *Config) { c.CreateDirectory = true })
	b.cfg.CreateDirectory = false
	require.NoError(t, os.RemoveAll(directory))
	require.NoError(t, os.WriteFile(directory, nil, 0o600), "a file has the place of the directory")
	for range 3 {
		err := b.ConsumeTraces(t.Context(), spans("a", 1))
		require.ErrorContains(t, err, "write a line to "+path)
		assert.False(t, consumererror.IsPermanent(err), "the caller tries again")
	}
	require.NoError(t, os.Remove(directory))
	require.NoError(t, b.ConsumeTraces(t.Context(), spans("a", 1)))
	require.NoError(t, b.ConsumeTraces(t.Context(), spans("b", 1)))
	assert.Len(t, names(t, path), 2)
	assert.EqualValues(t, 3, b.counts(t)["refused_lines"])
	assert.EqualValues(t, 2, b.counts(t)["lines"])
	lines := b.lines()
	assert.Equal(t, "Refused data", lines[0])
	assert.Equal(t, "Lines are written again", lines[len(lines)-1])
	assert.Len(t, lines, 3, "%q", lines) // with one about the deleted file
}

func TestConcurrentHandOversAreEachALine(t *testing.T) {
	path := newFile(t)
	b := started(t, path, func(c *Config) { c.Rotation = RotationConfig{MaxMegabytes: 1, MaxBackups: 100} })
	const callers, each, count = 8, 20, 100
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for n := range each {
				assert.NoError(t, b.ConsumeTraces(t.Context(), spans(fmt.Sprint(caller, "-", n, strings.Repeat("x", 100)), count)))
			}
		})
	}
	all.Wait()
	assert.Len(t, handOvers(t, path), callers*each)
	assert.Len(t, names(t, path), callers*each*count)
	assert.Positive(t, b.counts(t)["rotations"])
	assert.EqualValues(t, callers*each, b.counts(t)["lines"])
}

func TestAHandOverThatMayNotWaitIsRefused(t *testing.T) {
	b := started(t, newFile(t))
	e := b.shared
	for range cap(e.encoding) {
		e.encoding <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, b.ConsumeTraces(ctx, spans("a", 1)), context.Canceled)
	for range cap(e.encoding) {
		<-e.encoding
	}
	assert.NoError(t, b.ConsumeTraces(t.Context(), spans("a", 1)))
}

func TestAQueueIsWrittenBeforeTheFileIsClosed(t *testing.T) {
	path := newFile(t)
	queued := func(c *Config) { c.QueueConfig.GetOrInsertDefault(); c.RetryConfig.Enabled = true }
	b := started(t, path, queued)
	logs, err := b.factory.createLogs(t.Context(), b.set, b.cfg)
	require.NoError(t, err)
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	for n := range 50 {
		require.NoError(t, b.ConsumeTraces(t.Context(), spans(fmt.Sprint(n), 10)))
	}
	require.NoError(t, logs.Shutdown(t.Context()))
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Len(t, names(t, path), 500)
}

func BenchmarkConsumeTraces(b *testing.B) {
	const count = 1000
	bed, td := started(b, newFile(b), func(c *Config) { c.Rotation = RotationConfig{MaxMegabytes: 100, MaxBackups: 1} }), spans("com.example.Class.method", count)
	cputime.Events(b, count, func() {
		if err := bed.ConsumeTraces(b.Context(), td); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkMarshalTraces only makes the JSON of the same spans, with the pdata library.
func BenchmarkMarshalTraces(b *testing.B) {
	const count = 1000
	td := spans("com.example.Class.method", count)
	cputime.Events(b, count, func() {
		if _, err := new(ptrace.JSONMarshaler).MarshalTraces(td); err != nil {
			b.Fatal(err)
		}
	})
}

func TestAHandOverThatIsNoJSONIsRefusedForGood(t *testing.T) {
	path := newFile(t)
	b := started(t, path)
	err := b.shared.write(t.Context(), func() ([]byte, error) { return nil, os.ErrInvalid })
	require.ErrorIs(t, err, os.ErrInvalid)
	assert.True(t, consumererror.IsPermanent(err))
	assert.Empty(t, handOvers(t, path))
	assert.Empty(t, b.counts(t))
}

func TestAnAttributeThatIsNestedTooDeepIsRefusedForGood(t *testing.T) {
	ctx, path := t.Context(), newFile(t)
	b := started(t, path)
	td := ptrace.NewTraces()
	spans("a", 1).CopyTo(td)
	value := td.ResourceSpans().At(0).Resource().Attributes().PutEmpty("k")
	for range b.cfg.MaxAttributeDepth + 1 {
		value = value.SetEmptySlice().AppendEmpty()
	}
	err := b.ConsumeTraces(ctx, td)
	require.ErrorContains(t, err, `attribute "k" of a resource: expected at most 32 levels of lists and maps, got more`)
	require.ErrorContains(t, err, "raise max_attribute_depth of otlp_json_file")
	assert.True(t, consumererror.IsPermanent(err))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Empty(t, content)
}
