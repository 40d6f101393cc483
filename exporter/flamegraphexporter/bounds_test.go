// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

func TestEachBoundIsLoggedOnceForABurst(t *testing.T) {
	for i, field := range []func(*calltree.Counters) *uint64{
		func(c *calltree.Counters) *uint64 { return &c.FoldedPaths },
		func(c *calltree.Counters) *uint64 { return &c.OtherServices },
		func(c *calltree.Counters) *uint64 { return &c.YieldedServices },
		func(c *calltree.Counters) *uint64 { return &c.Shed.Calls },
		func(c *calltree.Counters) *uint64 { return &c.SilentServices },
		func(c *calltree.Counters) *uint64 { return &c.DroppedSamples },
		func(c *calltree.Counters) *uint64 { return &c.MixedServices },
		func(c *calltree.Counters) *uint64 { return &c.RefusedWindows },
		func(c *calltree.Counters) *uint64 { return &c.ParentsNotSeen.Limit },
	} {
		core, said := observer.New(zapcore.DebugLevel)
		var b bounds
		var counters calltree.Counters
		now := time.Unix(1, 0)
		say := func(more uint64) {
			*field(&counters) += more
			b.log(now, &counters, zap.New(core))
		}
		say(0)
		assert.Zero(t, said.Len())
		say(3)
		say(4)
		require.Equal(t, 1, said.Len())
		assert.Equal(t, bounded[i].text, said.All()[0].Message)
		assert.EqualValues(t, 3, said.All()[0].ContextMap()["since_start"])
		say(0)
		now = now.Add(2 * logline.Pause)
		say(1)
		assert.Equal(t, 2, said.Len())
	}
}

func TestBoundsThatSpansAndSamplesReachAreLogged(t *testing.T) {
	b := newBed(t, func(c *Config) { c.MaxServices = 1 })
	core, said := observer.New(zapcore.WarnLevel)
	b.set.Logger = zap.New(core)
	td := ptrace.NewTraces()
	for i := range 2 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, fmt.Sprint(i))
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("f")
	}
	require.NoError(t, b.consumeTraces(t.Context(), td))
	assert.Equal(t, 1, said.FilterMessageSnippet("max_services").Len())
	for i := range int32(30) {
		w := newWritten("0", "main", fmt.Sprint("kind", i))
		w.kind(2, 0)
		w.sample(1, 1)
		require.NoError(t, b.consumeProfiles(t.Context(), w.Profiles))
	}
	assert.Equal(t, 1, said.FilterMessageSnippet("too many kinds").Len())
}
