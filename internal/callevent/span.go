// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"encoding/binary"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The span that carries a batch: its name and its attributes.
const (
	SpanName         = "call events"
	AttributeVersion = "callbraid.batch.version"
	AttributeEvents  = "callbraid.batch.events"
	AttributeData    = "callbraid.batch.data"
)

// To makes span, which is empty, carry the batch. The trace ID is the stream's
// ID, so that whatever routes by trace ID keeps a call stream together.
func (p Packed) To(span ptrace.Span) {
	span.SetName(SpanName)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(pcommon.TraceID(p.Stream))
	span.SetSpanID(p.spanID())
	span.SetStartTimestamp(pcommon.Timestamp(max(p.First, 0)))
	span.SetEndTimestamp(pcommon.Timestamp(max(p.Last, 0)))
	attributes := span.Attributes()
	attributes.EnsureCapacity(3)
	attributes.PutInt(AttributeVersion, Version)
	attributes.PutInt(AttributeEvents, int64(p.Events))
	attributes.PutEmptyBytes(AttributeData).FromRaw(p.Data)
}

// spanID tells the batches of a stream apart: by their base and their time of
// closing. Nothing but a viewer of unpaired batches looks at it.
func (p Packed) spanID() (id pcommon.SpanID) {
	const odd = 0x9e3779b97f4a7c15
	n := binary.LittleEndian.Uint64(p.Data[32:])*odd ^ binary.LittleEndian.Uint64(p.Data[48:])
	binary.BigEndian.PutUint64(id[:], max(n, 1))
	return id
}

// Carries reports whether span carries a batch, of whatever version.
func Carries(span ptrace.Span) bool {
	if span.Name() != SpanName {
		return false
	}
	_, ok := span.Attributes().Get(AttributeVersion)
	return ok
}

// Data gives the data of the batch that span carries, for Batch.Unpack.
func Data(span ptrace.Span) ([]byte, error) {
	v, err := attribute(span, AttributeVersion, pcommon.ValueTypeInt)
	if err != nil {
		return nil, err
	}
	if v.Int() != Version {
		return nil, fmt.Errorf("call event batch: expected format version %d, got %d", Version, v.Int())
	}
	v, err = attribute(span, AttributeData, pcommon.ValueTypeBytes)
	if err != nil {
		return nil, err
	}
	return v.Bytes().AsRaw(), nil
}

func attribute(span ptrace.Span, key string, expected pcommon.ValueType) (pcommon.Value, error) {
	v, ok := span.Attributes().Get(key)
	got := "none"
	if ok {
		got = v.Type().String()
	}
	if got != expected.String() {
		return v, fmt.Errorf("call event batch: expected attribute %s of type %s, got %s", key, expected, got)
	}
	return v, nil
}
