// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadatatest"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/web"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/testkit"
)

// eventful is a flame graph in which each counted event happened, each a different number of times.
func eventful(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	now := time.Unix(1_700_000_000, 0)
	b.store = calltree.NewStore(calltree.Settings{
		PendingTimeout: time.Minute, MaxServices: 2, MaxNodes: calltree.LeastNodes, MaxPending: calltree.LeastPending,
		MaxNameBytes: 100, MaxNamesBytes: 1 << 20, MaxKeptSpans: 10, MaxWindows: 1,
		Now: func() time.Time { return now },
	})
	id := uint64(0)
	fold := func(service string, number int, change func(*calltree.Span)) {
		for range number {
			id++
			span := calltree.Span{Trace: calltree.TraceID{1}, Function: "f"}
			span.ID = [8]byte(numbered(int(id)))
			change(&span)
			b.store.Fold(calltree.Origin{Service: service}, []calltree.Span{span})
		}
	}
	waits := func(s *calltree.Span) { s.ParentTrace, s.Parent = s.Trace, calltree.SpanID{9, s.ID[6], s.ID[7]} }
	fold("one", 5, func(s *calltree.Span) { s.ID = calltree.SpanID{8} })                    // four are duplicates
	fold("one", 1200, func(s *calltree.Span) { s.Function = fmt.Sprint("f", id) })          // too many paths
	fold("one", 7, func(s *calltree.Span) { s.ParentTrace, s.Parent = s.Trace, s.ID })      // call themselves
	fold("one", 40, func(s *calltree.Span) { s.Trace = calltree.TraceID{2, byte(id + 1)} }) // traces of their own
	fold("one", calltree.LeastPending+21, waits)                                            // too many, and the others for too long
	fold("two", 1, func(*calltree.Span) {})
	fold("three", 13, func(*calltree.Span) {}) // one service too many
	now = now.Add(time.Hour)
	fold("four", 1, func(*calltree.Span) {}) // replaces a silent one
	for i := range 19 {
		b.store.FoldSamples(calltree.Origin{Service: "four"}, calltree.Kind{Type: fmt.Sprint(i)}, calltree.Sample{Frames: []calltree.Frame{{Function: "f"}}, Count: 10, Value: 1})
	}
	b.store.FoldSamples(calltree.Origin{Service: "four"}, calltree.Kind{Type: "1"}, calltree.Sample{IsCut: true, Count: 17, Value: 1})
	paths := calltree.NewCallPaths()
	paths.Add(paths.RestBelow(0, calltree.Folded), 29, 0, 1, false)
	b.store.FoldPaths(calltree.Origin{Service: "four"}, paths, time.Second)
	for range 9 + 1 {
		b.recent.isFirst(pprofile.ProfileID{1}, pathCalls)
	}
	refuseWindows(t, b.store, 11)
	b.server.handler.Store(dropWindows(t, b.store, 6))
	return b
}

// noWait is a turn without a queue.
func noWait(context.Context) error { return nil }

// refuseWindows asks for so many windows while as many as are allowed are being collected.
func refuseWindows(t *testing.T, store *calltree.Store, number int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := store.Collect(ctx, "four", calltree.Calls, time.Hour, noWait)
		done <- err
	}()
	testkit.Eventually(t, "a window", func() (bool, string) { return store.Usage().Windows == 1, "" })
	for range number {
		_, err := store.Collect(t.Context(), "four", calltree.Calls, time.Hour, noWait)
		require.ErrorIs(t, err, calltree.ErrBusy)
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// quick are trees whose windows end immediately.
type quick struct{ *calltree.Store }

func (q quick) Collect(context.Context, string, calltree.Kind, time.Duration, func(context.Context) error) (calltree.Snapshot, error) {
	return calltree.Snapshot{}, nil
}

// dropWindows has so many windows make room for others.
func dropWindows(t *testing.T, store *calltree.Store, number int) *web.Handler {
	t.Helper()
	h := web.New(quick{store}, web.Options{MaxKeptWindows: 1, MaxKeptWindowNodes: 1})
	for range number + 1 {
		r := httptest.NewRequest(http.MethodPost, "/windows", strings.NewReader("service=four&seconds=1"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	}
	return h
}

func TestEachMetricIsOfItsOwnCounter(t *testing.T) {
	b := eventful(t)
	c := b.store.Counters()
	names := map[uint64]string{}
	for name, want := range map[string]uint64{
		"spans": c.Spans, "duplicate_spans": c.Duplicates, "samples": c.Samples, "dropped_samples": c.DroppedSamples, "cut_samples": 17,
		"other_services": c.OtherServices, "silent_services": c.SilentServices, "forgotten_spans": c.Forgotten,
		"folded_paths": c.FoldedPaths, "dropped_kept_spans": c.DroppedKept, "dropped_traces": c.DroppedTraces,
		"path_calls": 29, "duplicate_profiles": 9, "refused_windows": 11, "dropped_windows": 6,
	} {
		assert.Positive(t, want, name)
		assert.Empty(t, names[want], "%s could be %s: both are %d", names[want], name, want)
		names[want] = name
		assert.EqualValues(t, want, b.sum(t, name), name)
	}
	reason := func(text string, count uint64) metricdata.DataPoint[int64] {
		assert.Empty(t, names[count], text)
		names[count] = text
		return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(
			attribute.String("exporter", metadata.Type.String()), attribute.String("reason", text)), Value: int64(count)}
	}
	assert.EqualValues(t, 7, c.ParentsNotSeen.Cycle)
	metadatatest.AssertEqualExporterFlameGraphParentsNotSeen(t, b.telemetry, []metricdata.DataPoint[int64]{
		reason("timeout", c.ParentsNotSeen.Timeout), reason("limit", c.ParentsNotSeen.Limit), reason("cycle", c.ParentsNotSeen.Cycle),
	}, metricdatatest.IgnoreTimestamp())
}
