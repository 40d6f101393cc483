// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math/bits"

	"github.com/callbraid/callbraid/internal/call/callevent"
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
	// pages are the ring's places, pageSlots in each; those of a ring of more
	// than flatSlots are made when something waits there. A place that holds no
	// waiting event has kind 0.
	pages [][]event
	// slots is how many places there would be in all pages: a power of two, or 0.
	slots uint64
	// made is how many there are.
	made int
	// All waiting events are in [low, high), which is no longer than slots.
	low, high uint64
	count     int
	// busy: more of the ring was in use than idle allows, since rests was asked last.
	busy bool
}

const (
	minSlots  = 256
	pageBits  = 10
	pageSlots = 1 << pageBits
	// flatSlots is up to how many places are made at once. Beyond that, a few
	// events that are far apart must not cost what a million do.
	flatSlots = 1 << 14
	eventSize = 32
	// idleShare is the share of the ring, one of so many, that an idle one uses.
	idleShare = 8
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
	w.tighten()
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
	if w.count > 0 && sequence-w.low < w.slots {
		w.high = max(w.high, sequence+1)
		w.busy = w.busy || (sequence-w.low)*idleShare >= w.slots
		return w.slot(sequence)
	}
	if w.count == 0 {
		w.low, w.high = sequence, sequence
	}
	if span := w.span(sequence); span > w.slots {
		w.resize(span)
	}
	w.low, w.high = min(w.low, sequence), max(w.high, sequence+1)
	return w.slot(sequence)
}

// slot gives the number's place, on a page that it may make.
func (w *window) slot(sequence uint64) *event {
	i := sequence & (w.slots - 1)
	page := &w.pages[i>>pageBits]
	if *page == nil {
		*page = make([]event, pageSlots)
		w.made += pageSlots
	}
	return &(*page)[i&(pageSlots-1)]
}

// at is where the event with the number waits, which does.
func (w *window) at(sequence uint64) *event {
	i := sequence & (w.slots - 1)
	return &w.pages[i>>pageBits][i&(pageSlots-1)]
}

// has reports whether the event waits.
func (w *window) has(sequence uint64) bool {
	if w.count == 0 || sequence-w.low >= w.high-w.low {
		return false
	}
	i := sequence & (w.slots - 1)
	page := w.pages[i>>pageBits]
	return page != nil && page[i&(pageSlots-1)].kind != 0
}

// run is the part of the ring from the number on whose places are beside each other
// and before high: those of kind 0 hold nothing. The number waits.
func (w *window) run(sequence uint64) []event {
	i := sequence & (w.slots - 1)
	page := w.pages[i>>pageBits][i&(pageSlots-1):]
	return page[:min(uint64(len(page)), w.high-sequence)]
}

// remove takes the event, which waits and is the lowest, out of the window.
func (w *window) remove(sequence uint64) { w.removeFrom(w.at(sequence), sequence) }

// removeFrom is remove where the event's place is known.
func (w *window) removeFrom(place *event, sequence uint64) {
	place.kind = 0
	w.count--
	w.low = sequence + 1
}

// next is the number above all that wait, or 0.
func (w *window) next() uint64 {
	if w.count == 0 {
		return 0
	}
	return w.high
}

// ready gives the number's place if the window has it without being changed, and
// covers no more than limit numbers then.
func (w *window) ready(sequence, limit uint64) *event {
	if w.count == 0 || sequence-w.low >= min(w.slots, limit) {
		return nil
	}
	i := sequence & (w.slots - 1)
	page := w.pages[i>>pageBits]
	if page == nil {
		return nil
	}
	w.high = max(w.high, sequence+1)
	w.busy = w.busy || (sequence-w.low)*idleShare >= w.slots
	return &page[i&(pageSlots-1)]
}

// first is the lowest number that waits. The window is not empty.
func (w *window) first() uint64 {
	w.low = w.from(w.low)
	return w.low
}

// tighten lets the window begin with the first event that waits.
func (w *window) tighten() {
	if w.count > 0 {
		w.first()
	}
}

// from is the lowest number from sequence on that waits. There is one.
func (w *window) from(sequence uint64) uint64 {
	for {
		i := sequence & (w.slots - 1)
		switch page := w.pages[i>>pageBits]; {
		case page == nil:
			sequence = (sequence | (pageSlots - 1)) + 1
		case page[i&(pageSlots-1)].kind != 0:
			return sequence
		default:
			sequence++
		}
	}
}

// each calls do with all events that wait, in no order.
func (w *window) each(do func(e *event)) {
	for _, page := range w.pages {
		for i := range page {
			if page[i].kind != 0 {
				do(&page[i])
			}
		}
	}
}

// resize makes a ring that has room for span numbers.
func (w *window) resize(span uint64) {
	old := *w
	w.busy = true
	w.slots = max(minSlots, uint64(1)<<bits.Len64(span-1))
	w.pages, w.made = make([][]event, (w.slots+pageSlots-1)/pageSlots), 0
	if w.slots <= flatSlots {
		places := make([]event, w.slots)
		w.made = len(places)
		for i := range w.pages {
			n := min(pageSlots, len(places))
			w.pages[i], places = places[:n:n], places[n:]
		}
	}
	for sequence, n := w.low, 0; n < w.count; n++ {
		sequence = old.from(sequence)
		*w.slot(sequence) = *old.at(sequence)
		sequence++
	}
}

// idle reports whether little of the window's memory is in use, as far as it is
// tight.
func (w *window) idle() bool {
	return w.slots > minSlots && (w.count == 0 || (w.high-w.low)*idleShare <= w.slots)
}

// rests reports whether the window is idle, and has been since it was asked last:
// one that empties between two batches would be made anew with each.
func (w *window) rests() bool {
	busy := w.busy
	w.busy = false
	return !busy && w.idle()
}

// shrink gives memory back when little of it is in use.
func (w *window) shrink() {
	w.tighten()
	switch {
	case !w.idle():
	case w.count == 0:
		w.pages, w.slots, w.made = nil, 0, 0
	default:
		w.resize((w.high - w.low) * 2)
	}
}

// bytes is the memory of the window.
func (w *window) bytes() int { return w.made*eventSize + len(w.pages)*pageBytes }
