// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// window has what came to a tree since a moment. Values stand at the tree's own nodes, so
// that a call is shown at its place also where its callers came before the window, and a
// caller's own time is without what it called before.
type window struct {
	from time.Time
	// to is when it ended; zero: it goes on. One that has ended is kept with its tree until it
	// is read, because nodes are merged and numbered anew.
	to time.Time
	// epoch is the store's since which it counts.
	epoch  uint32
	values map[uint32]values
	// lost is what its tree had lost before, or, once it has ended, what it lost meanwhile.
	lost Lost
	// missing is what was missing when it ended.
	missing Missing
}

func newWindow(from time.Time, epoch uint32, lost Lost) *window {
	return &window{from: from, epoch: epoch, values: map[uint32]values{}, lost: lost}
}

// count adds what came.
func (w *window) count(n uint32, v *values) {
	if w.to.IsZero() {
		w.add(n, v)
	}
}

// reset lets it begin anew; one that has ended has nothing then.
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

// give adds what it has of a node to another.
func (w *window) give(from, into uint32) {
	if v, ok := w.values[from]; ok {
		delete(w.values, from)
		w.add(into, &v)
	}
}

// nest says that the total of a node is part of another's.
func (w *window) nest(n uint32) {
	if v, ok := w.values[n]; ok {
		v.total = 0
		w.values[n] = v
	}
}
