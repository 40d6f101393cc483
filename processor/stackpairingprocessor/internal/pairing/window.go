// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math/bits"

	"github.com/callbraid/callbraid/internal/callevent"
)

// event is a call event with the stream's numbers for its names. Its sequence
// number is where it is. 32 bytes, without pointers: a window holds a million.
type event struct {
	time                            int64
	function, lane, exception, line uint32
	// receivedLow and receivedHigh say when the batch was received, Unix
	// nanoseconds without the low receivedShift bits. What comes of an event's
	// time must not depend on which batch came last.
	receivedLow       uint32
	receivedHigh      uint8
	kind              callevent.Kind
	ahead, attributes bool
}

// receivedShift makes receive times, which are below 2^62, 40 bits: 4 ms are
// near enough to set a clock by.
const receivedShift = 22

func (e *event) setReceived(t int64) {
	e.receivedLow, e.receivedHigh = uint32(t>>receivedShift), uint8(t>>(receivedShift+32))
}

func (e *event) received() int64 {
	return (int64(e.receivedHigh)<<32 | int64(e.receivedLow)) << receivedShift
}

// window holds the events that wait for earlier ones: a ring that is indexed by
// the sequence number, so that waiting costs one write and one read.
type window struct {
	// slots has a power of two of places. A place that holds no waiting event
	// has kind 0.
	slots []event
	// All waiting events are in [low, high), which is no longer than slots.
	low, high uint64
	count     int
}

const (
	minSlots  = 256
	eventSize = 32
)

// span is how many numbers the window covers, at most, once it holds sequence.
func (w *window) span(sequence uint64) uint64 {
	if w.count == 0 {
		return 1
	}
	return max(w.high, sequence+1) - min(w.low, sequence)
}

// exceeds reports whether the window, once it holds sequence, covers more
// numbers than limit.
func (w *window) exceeds(limit, sequence uint64) bool {
	if w.span(sequence) <= limit {
		return false
	}
	// low may be below the first that waits.
	if w.count > 0 {
		w.first()
	}
	return w.span(sequence) > limit
}

// roomy reports, quickly and at times falsely not, whether the number can wait
// without the window covering more numbers than limit.
func (w *window) roomy(sequence uint64, limit int) bool {
	return w.count > 0 && sequence >= w.low && sequence-w.low < uint64(limit)
}

// place gives the place of a waiting event, after making room for it.
// The place's kind is not 0 if the number waits already.
func (w *window) place(sequence uint64) *event {
	if w.count > 0 && sequence-w.low < uint64(len(w.slots)) {
		w.high = max(w.high, sequence+1)
		return w.at(sequence)
	}
	if w.count == 0 {
		w.low, w.high = sequence, sequence
	}
	if span := w.span(sequence); span > uint64(len(w.slots)) {
		w.resize(span)
	}
	w.low, w.high = min(w.low, sequence), max(w.high, sequence+1)
	return w.at(sequence)
}

// at is where the event with the number waits, if it does.
func (w *window) at(sequence uint64) *event { return &w.slots[sequence&uint64(len(w.slots)-1)] }

// has reports whether the event waits.
func (w *window) has(sequence uint64) bool {
	return w.count > 0 && sequence-w.low < w.high-w.low && w.at(sequence).kind != 0
}

// remove takes the event, which waits and is the lowest, out of the window.
func (w *window) remove(sequence uint64) {
	w.at(sequence).kind = 0
	w.count--
	w.low = sequence + 1
}

// first is the lowest number that waits. The window is not empty.
func (w *window) first() uint64 {
	for w.at(w.low).kind == 0 {
		w.low++
	}
	return w.low
}

func (w *window) resize(span uint64) {
	slots := make([]event, max(minSlots, 1<<bits.Len64(span-1)))
	for s := w.low; s < w.high; s++ {
		slots[s&uint64(len(slots)-1)] = w.slots[s&uint64(len(w.slots)-1)]
	}
	w.slots = slots
}

// idle reports whether little of the window's memory is in use.
func (w *window) idle() bool {
	return len(w.slots) > minSlots && (w.count == 0 || (w.high-w.first())*8 <= uint64(len(w.slots)))
}

// shrink gives memory back when little of it is in use.
func (w *window) shrink() {
	switch {
	case !w.idle():
	case w.count == 0:
		w.slots = nil
	default:
		w.resize((w.high - w.low) * 2)
	}
}

// bytes is the memory of the window.
func (w *window) bytes() int { return len(w.slots) * eventSize }
