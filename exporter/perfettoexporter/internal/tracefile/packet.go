// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of perfetto.protos.Trace and TracePacket.
const (
	fieldPacket = 1

	fieldClockSnapshot     = 6
	fieldTimestamp         = 8
	fieldSequenceID        = 10
	fieldTrackEvent        = 11
	fieldInternedData      = 12
	fieldSequenceFlags     = 13
	fieldCompressedPackets = 50
	fieldTimestampClockID  = 58 // also of TracePacketDefaults
	fieldPacketDefaults    = 59
	fieldTrackDescriptor   = 60
)

// fieldEventDefaults is the field number of TrackEventDefaults in TracePacketDefaults.
const fieldEventDefaults = 11

// Field numbers of TrackEvent. The track is also one of TrackEventDefaults.
const (
	fieldCategoryIID        = 3
	fieldDebugAnnotation    = 4
	fieldType               = 9
	fieldNameIID            = 10
	fieldTrackUUID          = 11
	fieldCounterValue       = 30
	fieldSourceLocationIID  = 34
	fieldDoubleCounterValue = 44
	fieldFlowID             = 47
)

// TrackEvent.Type.
const (
	typeSliceBegin = 1
	typeSliceEnd   = 2
	typeInstant    = 3
	typeCounter    = 4
)

// Field numbers of InternedData.
const (
	fieldEventCategories  = 1
	fieldEventNames       = 2
	fieldAnnotationNames  = 3
	fieldSourceLocations  = 4
	fieldAnnotationValues = 29
)

// Field numbers of the messages of InternedData: EventCategory, EventName, DebugAnnotationName, InternedString,
// and SourceLocation.
const (
	fieldIID  = 1
	fieldText = 2

	fieldFileName     = 2
	fieldFunctionName = 3
	fieldLineNumber   = 4
)

// Field numbers of DebugAnnotation.
const (
	fieldAnnotationNameIID = 1
	fieldBoolValue         = 2
	fieldIntValue          = 4
	fieldDoubleValue       = 5
	fieldStringValue       = 6
	fieldAnnotationName    = 10
	fieldDictEntries       = 11
	fieldArrayValues       = 12
	fieldStringValueIID    = 17
)

// Field numbers of TrackDescriptor, ProcessDescriptor, ThreadDescriptor, CounterDescriptor.
const (
	fieldUUID         = 1
	fieldTrackName    = 2
	fieldProcess      = 3
	fieldThread       = 4
	fieldParentUUID   = 5
	fieldCounter      = 8
	fieldDescription  = 14
	fieldSiblingMerge = 15

	fieldProcessPID  = 1
	fieldProcessName = 6

	fieldThreadPID  = 1
	fieldThreadTID  = 2
	fieldThreadName = 5

	fieldUnit     = 3
	fieldUnitName = 6
)

// siblingMergeNone is SIBLING_MERGE_BEHAVIOR_NONE. Readers would join tracks with the same name otherwise, and move
// instants out of their slices.
const siblingMergeNone = 2

// CounterDescriptor.Unit. Viewers scale these two.
const (
	unitTimeNanoseconds = 1
	unitSizeBytes       = 3
)

// Field numbers of ClockSnapshot and ClockSnapshot.Clock.
const (
	fieldClocks            = 1
	fieldPrimaryTraceClock = 2

	fieldClockID        = 1
	fieldClockTimestamp = 2
	fieldIsIncremental  = 3
)

// Clocks. The first number of a sequence's own clocks is 64.
const (
	clockRealtime    = 1
	clockBoottime    = 6
	clockIncremental = 64
)

// sequence is the number of the only packet sequence.
const sequence = 1

// sequenceStateCleared is SEQ_INCREMENTAL_STATE_CLEARED.
const sequenceStateCleared = 1

// appendVarint is protowire.AppendVarint, but the compiler puts the case of small numbers, which most are, into the callers.
func appendVarint(b []byte, v uint64) []byte {
	if v < moreFollows {
		return append(b, byte(v))
	}
	return protowire.AppendVarint(b, v)
}

func appendUint(b []byte, field protowire.Number, v uint64) []byte {
	return appendVarint(appendVarint(b, uint64(field)<<3|uint64(protowire.VarintType)), v)
}

func appendFixed64(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return appendFixed64(b, field, math.Float64bits(v))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendString(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// message is the position of a message whose length is not yet known. It has room for a length of two bytes.
type message int

const (
	lengthBytes = 2
	// moreFollows is the bit of a varint's byte that another one follows.
	moreFollows = 0x80
)

// begin begins a message of a field. end must end it.
func begin(b []byte, field protowire.Number) ([]byte, message) {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return append(b, 0, 0), message(len(b))
}

// end writes the length of the message, which ends with b.
func (m message) end(b []byte) []byte {
	start := int(m) + lengthBytes
	n := len(b) - start
	if n < 1<<14 {
		b[m], b[m+1] = byte(n)|moreFollows, byte(n>>7)
		return b
	}
	// The length needs more bytes.
	size := protowire.SizeVarint(uint64(n))
	b = append(b, make([]byte, size-lengthBytes)...)
	copy(b[int(m)+size:], b[start:start+n])
	protowire.AppendVarint(b[:m], uint64(n))
	return b
}
