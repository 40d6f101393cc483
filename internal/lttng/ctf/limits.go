// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// Bounds on what a trace may ask for. They are far above what tracers write.
const (
	// MaxMetadataBytes is how long the metadata of a trace may be.
	MaxMetadataBytes = 16 << 20
	// MaxPacketBytes is how long a packet may be.
	MaxPacketBytes = 1 << 30
	// maxClassFields is how many fields one scope may have, those of structures
	// that are used several times counted each time.
	maxClassFields = 1 << 16
	// maxTraceWork bounds the fields, operations and values of selectors of all
	// classes together.
	maxTraceWork = 1 << 19
	// workBytes is how many bytes one of these takes, about.
	workBytes = 150
	// declaredBytes is how many bytes the declarations of a byte of metadata take, about: that
	// of events with a few fields. See BytesOfReading for the time in which it is read.
	declaredBytes = 5
	// maxNesting is how deep the fields of a scope may be nested.
	maxNesting = 64
	// maxElements is how many values all arrays of one event may have, those that
	// are bytes aside. It is no more than freeElements and one for each bit that there
	// is: values may be of no size, and each takes memory.
	maxElements  = 1 << 20
	freeElements = 1 << 12
	// maxPacketSlots is how many values the header and the context of a packet may have
	// together, and maxPacketElements how many those of their arrays besides: a reader keeps
	// them as long as it reads the packet.
	maxPacketSlots    = 1 << 9
	maxPacketElements = 1 << 9
	// keptSlots is up to how many values, and keptBytes up to how many bytes that stand at
	// no byte, a reader keeps the space for when it rests, or has finished a packet.
	keptSlots = 1 << 9
	keptBytes = 8 * keptSlots
	// maxTurnsPerBit bounds, with maxElements, the operations for a whole packet:
	// fields may be of no size.
	maxTurnsPerBit = 16
	// maxMinBits is what the least size of a field is counted up to.
	maxMinBits = 1 << 40
	// maxSelectedByScan is up to how many ranges a selector's value is looked for one
	// by one.
	maxSelectedByScan = 8

	// BytesOfReading is how many bytes Trace.Append may take for each byte of metadata while it
	// runs, copies of the text and what is made of it included, where these declare events with
	// a few fields each.
	BytesOfReading = 20
)
