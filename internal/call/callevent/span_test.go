// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func packed(t testing.TB) Packed {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	require.True(t, addCall(p, &call{kind: KindEnter, sequence: 5, time: 1, function: functionMain, lane: laneMain}))
	require.True(t, addCall(p, &call{kind: KindExit, sequence: 6, time: 4, function: functionMain, lane: laneMain}))
	b, err := p.Close([]Barrier{Point(5, CauseSuspended)}, 7, testStream.Epoch)
	require.NoError(t, err)
	return b
}

func TestTheSpanDescribesTheBatch(t *testing.T) {
	span := ptrace.NewSpan()
	batch := packed(t)
	batch.To(span)
	assert.Equal(t, "call events", span.Name())
	assert.Equal(t, ptrace.SpanKindInternal, span.Kind())
	assert.Equal(t, pcommon.TraceID(testStream.ID), span.TraceID(), "routing by trace ID keeps a call stream together")
	assert.False(t, span.SpanID().IsEmpty())
	assert.True(t, span.ParentSpanID().IsEmpty())
	assert.Equal(t, pcommon.Timestamp(testStream.Epoch+1_000_000), span.StartTimestamp())
	assert.Equal(t, pcommon.Timestamp(testStream.Epoch+4_000_000), span.EndTimestamp())
	assert.Equal(t, map[string]any{
		"callbraid.batch.version": int64(1), "callbraid.batch.events": int64(2), "callbraid.batch.data": batch.Data,
	}, span.Attributes().AsRaw())

	clear(batch.Data) // the Packer's memory
	assert.True(t, Carries(span))
	data, err := Data(span)
	require.NoError(t, err)
	assert.Len(t, unpack(t, data, 9), 2)
}

func TestABatchSurvivesOTLP(t *testing.T) {
	traces := ptrace.NewTraces()
	batch := packed(t)
	batch.To(traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	for _, codec := range []struct {
		name      string
		marshal   func(ptrace.Traces) ([]byte, error)
		unmarshal func([]byte) (ptrace.Traces, error)
	}{
		{"protobuf", (&ptrace.ProtoMarshaler{}).MarshalTraces, (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces},
		{"JSON", (&ptrace.JSONMarshaler{}).MarshalTraces, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces},
	} {
		t.Run(codec.name, func(t *testing.T) {
			b, err := codec.marshal(traces)
			require.NoError(t, err)
			back, err := codec.unmarshal(b)
			require.NoError(t, err)
			span := back.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			require.True(t, Carries(span))
			data, err := Data(span)
			require.NoError(t, err)
			assert.Equal(t, batch.Data, data)
		})
	}
}

func TestSpansOfBatchesDiffer(t *testing.T) {
	seen := map[pcommon.SpanID]bool{}
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	for i := range 1000 {
		p.Reset()
		require.True(t, p.Add(&Event{Kind: KindSkip, Sequence: uint64(i / 2)}))
		b, err := p.Close(nil, 0, testStream.Epoch+int64(i%2))
		require.NoError(t, err)
		span := ptrace.NewSpan()
		b.To(span)
		assert.False(t, seen[span.SpanID()])
		assert.False(t, span.SpanID().IsEmpty())
		seen[span.SpanID()] = true
	}
}

func TestTimesBefore1970AreShownAsZero(t *testing.T) {
	span := ptrace.NewSpan()
	Packed{Stream: testStream.ID, Data: make([]byte, headerSize), First: -2, Last: -1}.To(span)
	assert.Zero(t, span.StartTimestamp())
	assert.Zero(t, span.EndTimestamp())
}

func TestOtherSpansAreNoBatches(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(ptrace.Span)
		carries bool
		want    string
	}{
		{"another name", func(s ptrace.Span) { s.SetName("GET /") }, false, ""},
		{"no version", func(s ptrace.Span) { s.Attributes().Remove(AttributeVersion) }, false,
			"call event batch: expected attribute callbraid.batch.version of type Int, got none"},
		{"a version of another type", func(s ptrace.Span) { s.Attributes().PutStr(AttributeVersion, "1") }, true,
			"call event batch: expected attribute callbraid.batch.version of type Int, got Str"},
		{"a later version", func(s ptrace.Span) { s.Attributes().PutInt(AttributeVersion, 2) }, true,
			"call event batch: expected format version 1, got 2"},
		{"no data", func(s ptrace.Span) { s.Attributes().Remove(AttributeData) }, true,
			"call event batch: expected attribute callbraid.batch.data of type Bytes, got none"},
		{"data of another type", func(s ptrace.Span) { s.Attributes().PutStr(AttributeData, "AAAA") }, true,
			"call event batch: expected attribute callbraid.batch.data of type Bytes, got Str"},
	} {
		t.Run(test.name, func(t *testing.T) {
			span := ptrace.NewSpan()
			packed(t).To(span)
			test.change(span)
			assert.Equal(t, test.carries, Carries(span))
			_, err := Data(span)
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, test.want)
			}
		})
	}
}
