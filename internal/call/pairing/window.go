// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math/bits"
	"unsafe"
)

// window has the events that wait for earlier ones. It is a ring with the sequence number
// as its index, so waiting costs one write and one read.
type window struct {
	// pages are the ring's places, pageSlots in each. A ring of more than flatSlots makes a
	// page when an event waits there. A place without a waiting event has kind 0.
	pages [][]event
	// slots is the number of places in all pages, if all were made: a power of two, or 0.
	slots uint64
	// made is the number of places that were made.
	made int
	// All waiting events are in [low, high), which is no longer than slots.
	low, high uint64
	count     int
	// busy: more of the ring was in use than idle allows, since the last call of rests.
	busy bool
}

const (
	minSlots  = 256
	pageBits  = 10
	pageSlots = 1 << pageBits
	// flatSlots is the size up to which a ring makes all places together. In a larger one, a
	// few events that are far apart must not cost as much as a million.
	flatSlots = 1 << 14
	eventSize = int(unsafe.Sizeof(event{}))
	pageBytes = int(unsafe.Sizeof([]event{}))
	// idleShare is the largest share of the ring, one of so many, that an idle ring uses.
	idleShare = 8
)

// span bounds the numbers that the window would cover with sequence in it.
func (w *window) span(sequence uint64) uint64 {
	if w.count == 0 {
		return 1
	}
	return max(w.high, sequence+1) - min(w.low, sequence)
}

// exceeds reports whether the window with sequence in it would cover more numbers than
// limit.
func (w *window) exceeds(limit, sequence uint64) bool {
	if w.span(sequence) <= limit {
		return false
	}
	w.tighten()
	return w.span(sequence) > limit
}

// roomy reports quickly whether the number can wait without the window covering more
// numbers than limit. A false may be wrong.
func (w *window) roomy(sequence uint64, limit int) bool {
	return w.count > 0 && sequence >= w.low && sequence-w.low < uint64(limit)
}

// place returns the place for an event, after making room for it. The kind of the place is
// not 0 if the number waits already.
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

// slot returns the number's place, on a page that it may make.
func (w *window) slot(sequence uint64) *event {
	i := sequence & (w.slots - 1)
	page := &w.pages[i>>pageBits]
	if *page == nil {
		*page = make([]event, pageSlots)
		w.made += pageSlots
	}
	return &(*page)[i&(pageSlots-1)]
}

// at is the place of a waiting event.
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

// run is the part of the ring from a waiting number on, up to high or the end of a page. A
// place of kind 0 holds nothing.
func (w *window) run(sequence uint64) []event {
	i := sequence & (w.slots - 1)
	page := w.pages[i>>pageBits][i&(pageSlots-1):]
	return page[:min(uint64(len(page)), w.high-sequence)]
}

// remove removes the lowest waiting event.
func (w *window) remove(sequence uint64) { w.removeFrom(w.at(sequence), sequence) }

// removeFrom is remove for a known place.
func (w *window) removeFrom(place *event, sequence uint64) {
	place.kind = 0
	w.count--
	w.low = sequence + 1
}

// next is the number above all waiting ones, or 0.
func (w *window) next() uint64 {
	if w.count == 0 {
		return 0
	}
	return w.high
}

// ready returns the number's place if it is made and the window then covers no more than
// limit numbers. Otherwise it returns nil.
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

// first is the lowest waiting number. The window is not empty.
func (w *window) first() uint64 {
	w.low = w.from(w.low)
	return w.low
}

// tighten makes the window begin with the first waiting event.
func (w *window) tighten() {
	if w.count > 0 {
		w.first()
	}
}

// from is the lowest waiting number from sequence on. There is one.
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

// each calls do with all waiting events, in no order.
func (w *window) each(do func(e *event)) {
	for _, page := range w.pages {
		for i := range page {
			if page[i].kind != 0 {
				do(&page[i])
			}
		}
	}
}

// resize makes a ring with room for span numbers.
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

// idle reports whether little of a tight window's memory is in use.
func (w *window) idle() bool {
	return w.slots > minSlots && (w.count == 0 || (w.high-w.low)*idleShare <= w.slots)
}

// rests reports whether the window has been idle since the last call of rests. A window
// that empties between two batches would otherwise be made again for each.
func (w *window) rests() bool {
	busy := w.busy
	w.busy = false
	return !busy && w.idle()
}

// shrink frees memory if little of it is in use.
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
