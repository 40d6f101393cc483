// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// The known numbers of the captures (testdata/README.md).
var captures = []struct {
	name                               string
	events, finished, unwound, orphans int
	truncated                          map[string]int
	breaks                             int
}{
	{name: "shop", events: 9_628, finished: 4_793, unwound: 63},
	{name: "suspend", events: 47_870, finished: 23_844, unwound: -1, orphans: 10, truncated: map[string]int{"suspended": 10}, breaks: 2},
	{name: "startsuspended", events: 29_310, finished: 14_605, unwound: -1},
	{name: "maven", events: 887_366, finished: 442_769, unwound: 1_840, truncated: map[string]int{"ended": 1}},
}

// Each capture, through the real protocol and the built distribution, becomes the spans of the
// reference, and the collector's own metrics have their number.
func TestCapturesBecomeTheSpansOfTheReference(t *testing.T) {
	t.Parallel()
	for _, capture := range captures {
		t.Run(capture.name, func(t *testing.T) {
			t.Parallel()
			endpoint := testkit.Address(t)
			c := kit.Start(t, collector(endpoint, "service_name: "+capture.name, ""))
			network := &unhurried{t: t, collector: c, endpoint: endpoint}
			agent{endpoint: endpoint, capture: capture.name, dial: network.dial()}.complete(t)
			c.AwaitMetric(t, 1, runsEnded)

			truncated := 0
			for cause, n := range capture.truncated {
				assert.EqualValues(t, n, c.Metric(t, truncatedFrames, `cause="`+cause+`"`), cause)
				truncated += n
			}
			assert.EqualValues(t, capture.events, c.Metric(t, eventsReceived), "events received")
			assert.EqualValues(t, capture.events, c.Metric(t, eventsTaken), "events paired")
			assert.EqualValues(t, capture.finished+truncated, c.Metric(t, spansFinished), "spans")
			assert.EqualValues(t, truncated, c.Metric(t, truncatedFrames), "truncated frames")
			assert.EqualValues(t, capture.orphans, c.Metric(t, orphans), "orphans")
			assert.EqualValues(t, capture.breaks, c.Metric(t, stackBreaks, `cause="suspended"`), "breaks")
			assert.Zero(t, c.Metric(t, openFrames), "open frames")
			c.Stop(t)

			got := readStreams(t, c, "spans.bin").only(t)
			assert.Equal(t, capture.name, got.resource["service.name"])
			want := reference.Spans(openCapture(t, capture.name), defaultRules)
			checkEqual(t, want, got)
			finished, unwound := 0, 0
			for _, s := range got.spans {
				if !s.isTruncated {
					finished++
				}
				if s.hasError {
					unwound++
				}
			}
			assert.Equal(t, capture.finished, finished, "calls that return or bubble")
			if capture.unwound >= 0 {
				assert.Equal(t, capture.unwound, unwound, "calls that bubble")
			}
			checkTraces(t, got, defaultRules.MaxSpansPerTrace)
		})
	}
}

// checkTraces checks that no trace is over the limit, and that there are no
// more of them than the limit and the returns to the bottoms of lanes ask for.
func checkTraces(t testing.TB, e *exported, limit int) {
	t.Helper()
	size := map[pcommon.TraceID]int{}
	bottoms := 0
	for _, s := range e.spans {
		size[s.trace]++
		if s.parent.IsEmpty() && len(s.links) == 0 {
			bottoms++
		}
	}
	for trace, n := range size {
		assert.LessOrEqual(t, n, limit, "spans in trace %v", trace)
	}
	least := (len(e.spans) + limit - 1) / limit
	assert.GreaterOrEqual(t, len(size), least)
	assert.LessOrEqual(t, len(size), least+bottoms, "traces")
}

// For any division and order of the events, and any number of agents at the same time: one agent's
// run becomes one call stream, and always the same one.
func TestSpansDoNotDependOnBuffersAndConnections(t *testing.T) {
	t.Parallel()
	agents := []agent{
		{connections: 1},
		{connections: 2, buffer: 200},
		{connections: 3, replay: replay.Options{Shuffle: true, Seed: 1}},
		{connections: 7, buffer: 512, replay: replay.Options{Shuffle: true, Seed: 2}},
		{connections: 2, buffer: 64 << 10, replay: replay.Options{Shuffle: true, Seed: 3}},
	}
	for _, name := range []string{"shop", "suspend"} {
		want := reference.Spans(openCapture(t, name), defaultRules)
		t.Run(name+", one after the other", func(t *testing.T) {
			endpoint := testkit.Address(t)
			c := kit.Start(t, collector(endpoint, sevenConnections, ""))
			network := &unhurried{t: t, collector: c, endpoint: endpoint}
			for _, a := range agents {
				a.endpoint, a.capture, a.dial = endpoint, name, network.dial()
				a.complete(t)
			}
			stopAfter(t, c, len(agents))
			checkStreams(t, c, want, len(agents))
		})
		t.Run(name+", all at the same time", func(t *testing.T) {
			endpoint := testkit.Address(t)
			c := kit.Start(t, collector(endpoint, sevenConnections, ""))
			network := &unhurried{t: t, collector: c, endpoint: endpoint}
			t.Run("agents", func(t *testing.T) {
				for _, a := range slices.Concat(agents, agents) {
					a.endpoint, a.capture, a.dial = endpoint, name, network.dial()
					t.Run("", func(t *testing.T) {
						t.Parallel()
						a.complete(t)
					})
				}
			})
			stopAfter(t, c, 2*len(agents))
			checkStreams(t, c, want, 2*len(agents))
		})
	}
}

// checkStreams checks that there are that many call streams, each the one
// wanted, and that none has an ID of another.
func checkStreams(t *testing.T, c *kit.Collector, want *reference.Result, streams int) {
	t.Helper()
	got := readStreams(t, c, "spans.bin")
	require.Len(t, got, streams, "call streams")
	owner := map[pcommon.TraceID]string{}
	for instance, e := range got {
		checkEqual(t, want, e)
		for _, s := range e.spans {
			other, taken := owner[s.trace]
			require.False(t, taken && other != instance, "trace %v is in the call streams %s and %s", s.trace, other, instance)
			owner[s.trace] = instance
		}
	}
}
