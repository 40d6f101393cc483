// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// ReadHeadersSlowly has event headers read by their programs, also those that are read
// at once because tracers lay them out so.
func (t *Trace) ReadHeadersSlowly() {
	for _, c := range t.classes {
		c.fast = nil
	}
}

// Reread gives up the values of the event that Next has read, and reads them again.
func (r *Reader) Reread() {
	r.release()
	r.reread()
}

// The bounds on elements of arrays.
const (
	FreeElements = freeElements
	MaxElements  = maxElements
)
