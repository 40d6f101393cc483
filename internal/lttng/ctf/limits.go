// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// Bounds on the resources of a trace. They are far above those of real tracers.
const (
	// MaxMetadataBytes is the maximum length of the metadata of a trace in CTF 2, and maxMetadataBytes18 in CTF 1.8. CTF
	// 2 is about four times as long: LTTng 2.15 writes 9 KiB for an event type with 20 fields, so 9,000 of these fit.
	// Reading CTF 1.8 takes more memory for each byte.
	MaxMetadataBytes   = 80 << 20
	maxMetadataBytes18 = 16 << 20
	// MaxPacketBytes is the maximum length of a packet.
	MaxPacketBytes = 1 << 30
	// maxClassFields is the maximum number of fields of one scope. Structures that are used several times count each
	// time.
	maxClassFields = 1 << 16
	// maxTraceWork bounds the fields, operations and values of selectors of all
	// classes together.
	maxTraceWork = 1 << 19
	// workBytes is the approximate memory for one of these, in bytes.
	workBytes = 150
	// declaredBytes is the approximate memory for the declarations in one byte of CTF 1.8 metadata, if these declare
	// events with a few fields. declaredBytesJSON is the same for CTF 2, in halves of a byte, because its text is longer.
	declaredBytes     = 5
	declaredBytesJSON = 2
	// appendedBytes is the length of the pieces in which Append reads metadata. It needs copies of one piece only.
	appendedBytes = 64 << 10
	// maxNesting is the maximum nesting depth of the fields of a scope.
	maxNesting = 64
	// maxElements is the maximum number of values in all arrays of one event, except arrays that are stored as bytes.
	// There may also be at most freeElements more than the event's packet has bits left, because values of size 0
	// take memory too.
	maxElements  = 1 << 20
	freeElements = 1 << 12
	// maxPacketSlots is the maximum number of values in the header and the context of a packet together.
	// maxPacketElements is the maximum number of values in their arrays. A reader holds them while it reads the
	// packet.
	maxPacketSlots    = 1 << 9
	maxPacketElements = 1 << 9
	// A reader without an open packet, or after Unload, holds memory for at most keptSlots values, and for at most
	// keptBytes of bytes that do not begin at a byte.
	keptSlots = 1 << 9
	keptBytes = 8 * keptSlots
	// maxOperationsPerBit and maxElements together bound the operations for a whole packet, because fields may have
	// size 0.
	maxOperationsPerBit = 16
	// maxMinBits is the upper limit of the minimum size of a field.
	maxMinBits = 1 << 40
	// maxSelectedByScan is the largest number of ranges that a selector searches one by one.
	maxSelectedByScan = 8

	// bytesOfReading is the memory of Trace.Append while it runs, for each byte of CTF 1.8 metadata. It includes copies
	// of the text and the classes made of it. It holds for metadata that declares events with a few fields each.
	// bytesOfReadingJSON is the same for CTF 2.
	bytesOfReading     = 20
	bytesOfReadingJSON = 5
)
