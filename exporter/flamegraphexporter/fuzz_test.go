// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/calltree"
)

// FuzzConsume takes whatever OTLP can say.
func FuzzConsume(f *testing.F) {
	w := newWritten("s", "main", "work", "cpu", attributeThreadID)
	w.kind(3, 0)
	w.sample(5, 2, 1).AttributeIndices().Append(0)
	a := w.Dictionary().AttributeTable().AppendEmpty()
	a.SetKeyStrindex(4)
	a.Value().SetInt(7)
	profiles, err := new(pprofile.ProtoMarshaler).MarshalProfiles(w.Profiles)
	require.NoError(f, err)
	f.Add(profiles)
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr(attributeService, "s")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("f")
	span.SetSpanID([8]byte{1})
	span.Attributes().PutStr(attributeFunction, "p.f")
	link(span, calltree.TraceID{1}, calltree.SpanID{2}, "continuation")
	span.CopyTo(rs.ScopeSpans().At(0).Spans().AppendEmpty())
	traces, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
	require.NoError(f, err)
	f.Add(traces)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := newBed(t, func(c *Config) {
			c.MaxServices, c.MaxNodes, c.MaxPending, c.Traces.MaxSpans = 10, calltree.LeastNodes, calltree.LeastPending, 10
		})
		// The same bytes are tried as both.
		if td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(data); err == nil {
			require.NoError(t, g.consumeTraces(t.Context(), td))
		}
		if pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(data); err == nil {
			require.NoError(t, g.consumeProfiles(t.Context(), pd))
		}
		for _, service := range g.store.Services() {
			for _, kind := range service.Kinds {
				_, ok := g.store.Snapshot(service.Name, kind)
				require.True(t, ok)
			}
		}
	})
}
