// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// captures are recorded programs.
var captures = []string{"shop", "suspend", "maven"}

func capturePath(name string) string { return "../../testdata/bytefrog/" + name + ".zip" }

// callsOf returns the number of calls in a capture.
func callsOf(t testing.TB, name string) int {
	t.Helper()
	run, err := reference.Open(capturePath(name))
	require.NoError(t, err)
	return len(reference.Spans(run, reference.Rules{End: "ended"}).Spans)
}

// patience is the time that tests allow on a busy machine.
const patience = 5 * time.Minute

// sink holds the spans of the processor.
type sink struct {
	mu    sync.Mutex
	calls []ptrace.Traces
	spans int
}

func (s *sink) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, td)
	s.spans += td.SpanCount()
	return nil
}

func (s *sink) received() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spans
}

// capturedTraces plays a capture by its agent into the receiver and the processor, and returns their spans. Several connections
// deliver at the same time, so messages can overtake each other. The result has them in the order of their calls.
func capturedTraces(t testing.TB, name string) []ptrace.Traces {
	t.Helper()
	calls := callsOf(t, name)
	ctx, host, end := context.Background(), componenttest.NewNopHost(), &sink{}
	next, err := consumer.NewTraces(end.ConsumeTraces)
	require.NoError(t, err)
	pairing, receiving, endpoint := stackpairingprocessor.NewFactory(), bytefrogreceiver.NewFactory(), testkit.Address(t)
	processor, err := pairing.CreateTraces(ctx, processortest.NewNopSettings(pairing.Type()), configured(t, pairing, map[string]any{
		"reorder": map[string]any{"max_wait": patience}, "idle_timeout": 2 * patience, "max_clock_jump": time.Hour, "shutdown_timeout": patience,
	}), next)
	require.NoError(t, err)
	receiver, err := receiving.CreateTraces(ctx, receivertest.NewNopSettings(receiving.Type()), configured(t, receiving, map[string]any{
		"endpoint": endpoint, "service_name": "captured", "shutdown_timeout": patience, "missed_heartbeats": 100_000, "name_wait": patience / 2,
		"limits": map[string]any{"handshake_timeout": patience, "message_timeout": patience},
	}), processor)
	require.NoError(t, err)
	require.NoError(t, processor.Start(ctx, host))
	require.NoError(t, receiver.Start(ctx, host))
	c, err := capture.Open(capturePath(name))
	require.NoError(t, err)
	recording, err := replay.Load(c)
	require.NoError(t, err)
	result := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: patience, StartTimeout: patience},
		replay.New(recording, replay.Options{})).Run(ctx)
	require.Equal(t, bytefrogagent.Completed, result.Outcome, "%s (%v)", result.Reason, result.Err)
	testkit.EventuallyWithin(t, patience, "all spans", func() (bool, string) { return end.received() >= calls, fmt.Sprint(end.received()) })
	require.NoError(t, receiver.Shutdown(ctx))
	require.NoError(t, processor.Shutdown(ctx))
	require.Equal(t, calls, end.spans)
	slices.SortStableFunc(end.calls, func(a, b ptrace.Traces) int { return cmp.Compare(firstEnd(a), firstEnd(b)) })
	return end.calls
}

// firstEnd returns the end of the first call of a message.
func firstEnd(td ptrace.Traces) pcommon.Timestamp {
	return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).EndTimestamp()
}

func configured(t testing.TB, factory component.Factory, settings map[string]any) component.Config {
	t.Helper()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
	return config
}

func eachSpan(calls []ptrace.Traces) (spans []ptrace.Span) {
	for _, td := range calls {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	}
	return spans
}

// drawnSpan is what a file shows of a span, or of one of its events.
type drawnSpan struct {
	name, function   string
	start, end       uint64
	thread           int64
	threadName       string
	depth            int
	failed, instant  bool
	truncated, error string
}

// TestFilesHaveTheSpansOfCaptures compares the files with the spans, whose parents give the depths.
func TestFilesHaveTheSpansOfCaptures(t *testing.T) {
	for _, name := range captures {
		if testing.Short() && name != "shop" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			traces := capturedTraces(t, name)
			spans := eachSpan(traces)
			path := newFile(t)
			b := started(t, path)
			for _, td := range traces {
				require.NoError(t, b.consumeTraces(t.Context(), td))
			}
			require.NoError(t, b.signal.Shutdown(t.Context()))
			read, err := perfettofile.Open(path)
			require.NoError(t, err)
			got := drawnSlices(t, read)
			want := drawnSpans(t, spans)
			require.Len(t, got, len(want))
			assert.True(t, slices.Equal(want, got), "first difference: %s", firstDifference(want, got))
			assert.Zero(t, b.counts(t)["overlapping_tracks"])
			assert.EqualValues(t, len(spans), b.counts(t)["slices"])
			info, err := os.Stat(path)
			require.NoError(t, err)
			perSlice := float64(info.Size()) / float64(len(spans))
			t.Logf("%d slices in %d chunks, %.2f bytes each", len(spans), read.Chunks, perSlice)
			if name == "maven" {
				assert.Less(t, perSlice, 10.0)
			}
		})
	}
}

func firstDifference(want, got []drawnSpan) string {
	for i := range want {
		if want[i] != got[i] {
			return fmt.Sprintf("%d: expected %+v, got %+v", i, want[i], got[i])
		}
	}
	return "none"
}

// drawnSpans are the spans and their events as a file should show them. All times differ.
func drawnSpans(t testing.TB, spans []ptrace.Span) (all []drawnSpan) {
	t.Helper()
	byID := map[pcommon.SpanID]ptrace.Span{}
	for _, s := range spans {
		byID[s.SpanID()] = s
	}
	parentOf := func(s ptrace.Span) (ptrace.Span, bool) {
		id := s.ParentSpanID()
		if id.IsEmpty() && s.Links().Len() > 0 {
			id = s.Links().At(0).SpanID()
		}
		parent, ok := byID[id]
		return parent, ok
	}
	depths := map[pcommon.SpanID]int{}
	var depthOf func(s ptrace.Span) int
	depthOf = func(s ptrace.Span) int {
		depth, ok := depths[s.SpanID()]
		if !ok {
			if parent, ok := parentOf(s); ok {
				depth = depthOf(parent) + 1
			}
			depths[s.SpanID()] = depth
		}
		return depth
	}
	text := func(m pcommon.Map, key string) string {
		v, _ := m.Get(key)
		return v.Str()
	}
	// Names of tracks are those of the first span that ended.
	threads := map[int64]string{}
	for _, s := range spans {
		id, _ := s.Attributes().Get("thread.id")
		if _, ok := threads[id.Int()]; !ok {
			threads[id.Int()] = text(s.Attributes(), "thread.name")
		}
	}
	for _, s := range spans {
		id, _ := s.Attributes().Get("thread.id")
		d := drawnSpan{
			name: s.Name(), function: text(s.Attributes(), "code.function.name"), start: uint64(s.StartTimestamp()), end: uint64(s.EndTimestamp()),
			thread: id.Int(), threadName: threads[id.Int()], failed: s.Status().Code() == ptrace.StatusCodeError,
			truncated: text(s.Attributes(), "callbraid.truncated"), error: text(s.Attributes(), "error.type"),
		}
		d.depth = depthOf(s)
		all = append(all, d)
		for _, event := range s.Events().All() {
			all = append(all, drawnSpan{
				name: event.Name(), start: uint64(event.Timestamp()), end: uint64(event.Timestamp()), thread: id.Int(), threadName: d.threadName,
				depth: d.depth + 1, instant: true, error: text(event.Attributes(), "exception.type"),
			})
		}
	}
	slices.SortFunc(all, compareDrawn)
	return all
}

func drawnSlices(t testing.TB, read *perfettofile.Trace) (all []drawnSpan) {
	t.Helper()
	text := func(args map[string]any, key string) string {
		s, _ := args[key].(string)
		return s
	}
	for _, s := range read.Slices {
		require.False(t, s.Open)
		d := drawnSpan{
			name: s.Name, function: text(s.Args, "source.function_name"), start: s.Start, end: s.End, thread: s.Track.Thread.TID,
			threadName: s.Track.Thread.Name, depth: s.Depth, instant: s.Instant, failed: slices.Contains(s.Categories, "error"),
			truncated: text(s.Args, "callbraid.truncated"), error: text(s.Args, "error.type") + text(s.Args, "exception.type"),
		}
		require.Equal(t, d.truncated != "", slices.Contains(s.Categories, "truncated"))
		require.Equal(t, "captured", s.Track.Process.Name)
		all = append(all, d)
	}
	slices.SortFunc(all, compareDrawn)
	return all
}

func compareDrawn(a, b drawnSpan) int {
	if a.start != b.start {
		return int(int64(a.start) - int64(b.start))
	}
	if a.depth != b.depth {
		return a.depth - b.depth
	}
	return int(a.thread - b.thread)
}
