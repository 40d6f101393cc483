// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math/rand/v2"
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// A window returns the events that were put in, from the lowest number on, at any distance and in any order.
func TestAWindowReturnsAllEventsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []uint64{100, pageSlots, flatSlots, 4 * flatSlots, 1 << 20} {
		var w window
		waits := map[uint64]bool{}
		lowest := uint64(1<<40) - spread/2
		for range 20_000 {
			switch n := lowest + r.Uint64N(spread); {
			case w.exceeds(1<<20, n):
			case r.IntN(3) > 0:
				place := w.place(n)
				if known := place.kind != 0; known != waits[n] {
					t.Fatalf("spread %d: %d waits: %t, expected %t", spread, n, known, waits[n])
				}
				if place.kind == 0 {
					w.count++
				}
				place.kind, place.time = callevent.KindEnter, int64(n)
				waits[n] = true
			case w.count > 0:
				n = w.first()
				if !waits[n] || !w.has(n) || w.at(n).time != int64(n) || w.has(n-1) {
					t.Fatalf("spread %d: %d is the first, at its place is %+v", spread, n, *w.at(n))
				}
				delete(waits, n)
				w.remove(n)
				lowest = n + 1
			default:
				w.shrink()
			}
			if r.IntN(500) == 0 {
				w.shrink()
			}
		}
		for ; w.count > 0; w.remove(w.first()) {
			if n := w.first(); !waits[n] || w.at(n).time != int64(n) {
				t.Fatalf("spread %d: %d is still there", spread, n)
			}
			delete(waits, w.first())
		}
		if len(waits) > 0 {
			t.Errorf("spread %d: %d events were lost", spread, len(waits))
		}
		if w.shrink(); w.bytes() > minSlots*eventSize+pageBytes {
			t.Errorf("spread %d: an empty window has %d bytes", spread, w.bytes())
		}
	}
}

// A small batch can have events that are far apart. They use no memory for the numbers between them.
func TestEventsFarApartUseLittleMemory(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batchOf(func(d *delivery) { d.events[1].sequence = 1 << 20 }, "1 +f\n2 -f")(r)
	if n := r.stream.Waiting(); n != 2 {
		t.Fatalf("%d events wait", n)
	}
	if n := r.stream.Bytes(); n > 128<<10 {
		t.Errorf("two events take %d bytes", n)
	}
	batch("0 .")(r)
	r.end(callevent.CauseShutdown)
	checkNoFault(t, r)
}

// A window that fills and empties between two calls of rests keeps its places. It frees them if no event has waited
// since the last call.
func TestAWindowFreesItsPlacesOnlyWhenUnused(t *testing.T) {
	var w window
	use := func(from, to uint64) {
		for n := from; n < to; n++ {
			w.place(n).kind = callevent.KindEnter
			w.count++
		}
		for ; w.count > 0; w.remove(w.first()) {
		}
	}
	use(0, 100_000)
	for round := range uint64(3) {
		use(round<<20, round<<20+100_000)
		if w.rests() {
			t.Errorf("round %d: the window rests though it was in use", round)
		}
	}
	// A window that has grown was in use, even if it is empty soon after.
	w = window{}
	for _, n := range []uint64{1, 100_000} {
		w.place(n).kind = callevent.KindEnter
		w.count++
	}
	for ; w.count > 0; w.remove(w.first()) {
	}
	if w.rests() {
		t.Error("the window rests though it has grown for waiting events")
	}
	// A window was also in use if an event waited in one of its old places.
	w = window{}
	use(0, 100_000)
	w.rests()
	w.place(200_000).kind = callevent.KindEnter
	w.count++
	place := w.ready(230_000, 1<<20)
	if place == nil {
		t.Fatal("expected a place")
	}
	place.kind = callevent.KindEnter
	w.count++
	w.remove(200_000)
	w.remove(230_000)
	if w.rests() {
		t.Error("the window rests though its places were used")
	}
	use(1<<30, 1<<30+100)
	if !w.rests() {
		t.Error("the window does not rest though little of it was in use")
	}
}
