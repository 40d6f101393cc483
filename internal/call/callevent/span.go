// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"encoding/binary"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Name and attributes of the span of a batch.
const (
	SpanName         = "call events"
	AttributeVersion = "callbraid.batch.version"
	AttributeEvents  = "callbraid.batch.events"
	AttributeData    = "callbraid.batch.data"
)

// To makes span, which is empty, the span of the batch. Its trace ID is the stream's ID, so routing
// by trace ID keeps a call stream together.
func (p Packed) To(span ptrace.Span) {
	span.SetName(SpanName)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(pcommon.TraceID(p.Stream))
	span.SetSpanID(p.spanID())
	span.SetStartTimestamp(pcommon.Timestamp(max(p.First, 0)))
	span.SetEndTimestamp(pcommon.Timestamp(max(p.Last, 0)))
	attributes := span.Attributes()
	attributes.EnsureCapacity(batchAttributes)
	attributes.PutInt(AttributeVersion, Version)
	attributes.PutInt(AttributeEvents, int64(p.Events))
	attributes.PutEmptyBytes(AttributeData).FromRaw(p.Data)
}

// Needs are minimums for settings of stack_pairing, from the settings of a stream's receiver. With
// lower settings calls that are only late would be dropped. A batch may have needs. They are
// attributes of the span and not in its data, so other readers ignore them.
type Needs []Need

// Need requires that a setting of stack_pairing is larger than a value.
type Need struct {
	// Of is the setting of stack_pairing: reorder.max_wait, reorder.max_events or idle_timeout.
	// Others have no effect.
	Of string
	// Because is the setting of the receiver with its value, such as name_wait: 1s.
	Because string
	// MoreThan is nanoseconds, or a number of events.
	MoreThan int64
}

// AttributeNeeds, followed by the name of a setting of stack_pairing, is the attribute for the
// needs of that setting: a map from Because to MoreThan.
const AttributeNeeds = "callbraid.batch.more_than."

// batchAttributes is the number of attributes of a batch's span without needs.
const batchAttributes = 3

// To adds the needs to span, the span of a batch.
func (n Needs) To(span ptrace.Span) {
	for _, need := range n {
		v, found := span.Attributes().GetOrPutEmpty(AttributeNeeds + need.Of)
		if !found {
			v.SetEmptyMap()
		}
		v.Map().PutInt(need.Because, need.MoreThan)
	}
}

// HasNeeds reports whether span, the span of a batch, may have needs. Most have none.
func HasNeeds(span ptrace.Span) bool { return span.Attributes().Len() > batchAttributes }

// NeedsOf returns the needs of one setting of stack_pairing that its value does not meet. They are
// unchecked data of the sender.
func NeedsOf(span ptrace.Span, of string, value int64) (unmet Needs) {
	v, found := span.Attributes().Get(AttributeNeeds + of)
	if !found || v.Type() != pcommon.ValueTypeMap {
		return nil
	}
	for because, least := range v.Map().All() {
		if least.Type() == pcommon.ValueTypeInt && value <= least.Int() {
			unmet = append(unmet, Need{Of: of, Because: because, MoreThan: least.Int()})
		}
	}
	return unmet
}

// spanID distinguishes the batches of a stream by their base and time of closing. It matters only
// to viewers of unpaired batches.
func (p Packed) spanID() (id pcommon.SpanID) {
	const odd = 0x9e3779b97f4a7c15
	n := binary.LittleEndian.Uint64(p.Data[32:])*odd ^ binary.LittleEndian.Uint64(p.Data[48:])
	binary.BigEndian.PutUint64(id[:], max(n, 1))
	return id
}

// Carries reports whether span is the span of a batch, of any version.
func Carries(span ptrace.Span) bool {
	if span.Name() != SpanName {
		return false
	}
	_, ok := span.Attributes().Get(AttributeVersion)
	return ok
}

// Data returns the data of a batch from its span, for Batch.Unpack.
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
