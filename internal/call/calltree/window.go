// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// window has the calls of a tree since a moment. Its values belong to the tree's own nodes. So
// a call is at its place even if its callers arrived before the window, and the own time of a
// caller does not include earlier callees.
type window struct {
	from time.Time
	// to is its end; zero: it is open. An ended window stays with its tree until it is read,
	// because nodes are merged and get other numbers.
	to time.Time
	// epoch is that of the forest since which it counts.
	epoch  uint32
	values map[uint32]values
	// lost is the tree's loss at its begin, or after its end the loss in between.
	lost Lost
	// missing are the missing classes at its end.
	missing Missing
}

func newWindow(from time.Time, epoch uint32, lost Lost) *window {
	return &window{from: from, epoch: epoch, values: map[uint32]values{}, lost: lost}
}

// count adds values, if the window is open.
func (w *window) count(n uint32, v *values) {
	if w.to.IsZero() {
		w.add(n, v)
	}
}

// reset starts the window again. An ended window becomes empty.
func (w *window) reset(now time.Time, epoch uint32, lost Lost) {
	from, to := w.from, w.to
	*w = *newWindow(now, epoch, lost)
	if !to.IsZero() {
		w.from, w.to, w.lost = from, to, Lost{}
	}
}

func (w *window) add(n uint32, v *values) {
	sum := w.values[n]
	sum.add(v)
	w.values[n] = sum
}

// moveValues moves the values of a node to another.
func (w *window) moveValues(from, into uint32) {
	if v, ok := w.values[from]; ok {
		delete(w.values, from)
		w.add(into, &v)
	}
}

// nest clears the total of a node, which is part of another's.
func (w *window) nest(n uint32) {
	if v, ok := w.values[n]; ok {
		v.total = 0
		w.values[n] = v
	}
}
