// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// ReadHeadersSlowly makes the trace read all event headers by their programs, including those of LTTng's two layouts.
func (t *Trace) ReadHeadersSlowly() {
	for _, c := range t.classes {
		c.fast = nil
	}
}

// PassedBits returns the size of the fields over which readers pass if nobody uses them.
func (c *EventClass) PassedBits() int { return int(c.bits) }

// Reread drops the values of the last event and reads them again.
func (r *Reader) Reread() {
	r.release()
	r.reread()
}

// The bounds on elements of arrays.
const (
	FreeElements = freeElements
	MaxElements  = maxElements
)
