// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

const (
	frameBytes     = int(unsafe.Sizeof(frame{}))
	throwBytes     = int(unsafe.Sizeof(Throw{}))
	attributeBytes = int(unsafe.Sizeof(attribute{}))
	laneBytes      = int(unsafe.Sizeof(lane{}))
	rangeBytes     = int(unsafe.Sizeof(passed{}))
	pageBytes      = int(unsafe.Sizeof([]event{}))
	barrierBytes   = int(unsafe.Sizeof(callevent.Barrier{}))
	// waitingBytes is about what a map takes for the attributes of an event: its
	// number and a slice, and places that are empty.
	waitingBytes = 56
	arrivalBytes = int(unsafe.Sizeof(arrival{}))
	// emptyBytes is what the maps of a stream take in which there is nothing.
	emptyBytes = 1100

	// keptStack is how many bytes an empty lane keeps for its next calls: threads
	// that were deep once, of which a pool has hundreds, would keep megabytes.
	keptStack = 32 << 10
)

// Bytes is about the memory that the stream holds.
func (s *Stream) Bytes() int {
	if s.ended {
		return cap(s.passed) * rangeBytes
	}
	return emptyBytes + s.window.bytes() + s.names.bytes + s.attributeBytes + s.mostAttributes*waitingBytes + s.stackBytes + cap(s.lanes)*laneBytes +
		cap(s.passed)*rangeBytes + cap(s.arrivals)*arrivalBytes + (cap(s.barriers.pending)+cap(s.barriers.heard))*barrierBytes
}

// Spare gives memory back that is not in use, and loses nothing: the places of
// events that waited, and names that lanes had.
func (s *Stream) Spare() {
	s.window.shrink()
	if s.names.laneBytes > s.names.sweptBytes {
		s.sweepLaneNames()
	}
}

// bytes is the memory of the lane's stack.
func (l *lane) bytes() int {
	return cap(l.frames)*frameBytes + cap(l.throws)*throwBytes + cap(l.attributes)*attributeBytes
}

// slim gives the memory of a stack back that is empty, and was deep.
func (s *Stream) slim(l *lane) {
	if l.bytes() > keptStack {
		s.drop(l)
	}
}

// drop gives the memory of an empty stack back.
func (s *Stream) drop(l *lane) {
	s.stackBytes -= l.bytes()
	l.frames, l.throws, l.attributes, l.counts = nil, nil, nil, nil
}
