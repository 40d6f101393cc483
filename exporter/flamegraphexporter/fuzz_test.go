// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/testkit/handovers"
	"github.com/callbraid/callbraid/internal/testkit/nested"
)

// FuzzTraces folds resources, scopes and spans of any sender. Each span is folded or a duplicate,
// scalars name services, and an honest service is shown for any input.
func FuzzTraces(f *testing.F) {
	keys := []string{
		attributeService, attributeInstance, attributeFunction, attributeFile, attributeLine,
		attributeThreadID, attributeThreadName, attributeTruncated, attributeLink, attributeRepeatedCalls, attributeRepeatedTotal,
	}
	const resource, span, link = handovers.StepResource, handovers.StepSpan, handovers.StepLink
	f.Add([]byte{resource, span, 0x01, span, 0x12, span, 0x21, link, 3, resource, span, 4})
	for key := range byte(len(keys) + 2) {
		for kind := range byte(9) {
			f.Add(slices.Concat([]byte{resource, span, 1, link, 2},
				handovers.Attribute(handovers.InResource, key, kind, 100), handovers.Attribute(handovers.InSpan, key, kind, 100),
				handovers.Attribute(handovers.InLink, key, kind, 7)))
		}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		g := newBed(t, func(c *Config) {
			c.MaxServices, c.MaxNodes, c.MaxPending, c.Traces.MaxSpans = 10, calltree.LeastNodes, calltree.LeastPending, 10
		})
		td := handovers.Traces(script, keys, func(span ptrace.Span, n byte) {
			span.SetName("call events") // a batch that was not paired is a span like any other
			span.SetSpanID([8]byte{1: n})
		})
		require.NoError(t, g.consumeTraces(t.Context(), td))
		counters := g.store.Counters()
		require.EqualValues(t, td.SpanCount(), counters.Spans+counters.Duplicates+g.duplicates.Load())
		named := map[string]bool{unknownService: true}
		for _, rs := range td.ResourceSpans().All() {
			if v, ok := rs.Resource().Attributes().Get(attributeService); ok {
				switch v.Type() {
				case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
				default:
					named[calltree.Cut(v.AsString(), g.config.MaxNameBytes)] = true
				}
			}
		}
		for _, service := range g.store.Services() {
			if len(named) <= g.config.MaxServices {
				require.Contains(t, named, service.Name)
			}
			for _, kind := range service.Kinds {
				_, ok := g.store.Snapshot(service.Name, kind)
				require.True(t, ok)
			}
		}
		honest := ptrace.NewTraces()
		rs := honest.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, "honest")
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetSpanID([8]byte{7: 9})
		require.NoError(t, g.consumeTraces(t.Context(), honest))
		require.EqualValues(t, counters.Spans+1, g.store.Counters().Spans)
	})
}

// FuzzConsume consumes any OTLP.
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
	s := sums{}
	s.of(false, 3, "main", "work").values = [pathValues]int64{2, 1, 10}
	s.of(true, 3, "main", "work").values = [pathValues]int64{1, 0, 5}
	s.of(false, 0, furtherPaths).values = [pathValues]int64{1, 0, 5}
	profiles, err = new(pprofile.ProtoMarshaler).MarshalProfiles(s.profiles(nil, "s"))
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
	for _, at := range nested.Places() {
		for _, kind := range []nested.Kind{nested.Lists, nested.Maps} {
			if at.Signal == nested.Traces || at.Signal == nested.Profiles {
				request, _ := nested.Protobuf(at, kind, 1000, nil)
				f.Add(request)
			}
		}
	}
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
