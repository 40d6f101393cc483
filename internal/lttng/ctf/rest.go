// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import "math"

// A trace has thousands of streams, and each has a reader that holds the next event or waits for a packet. A waiting
// reader holds little memory for any metadata: it drops the values of a large event and reads them again when it is
// the event's turn.

// Unload drops the values of the last event if they use much memory. The event's class and time stay valid. Call
// Reload before the next call of Next.
func (r *Reader) Unload() {
	if r.m.isLarge() {
		r.release()
		r.unloaded = true
	}
}

// Reload reads the values again that Unload dropped.
func (r *Reader) Reload() {
	if r.unloaded {
		r.reread()
	}
}

func (r *Reader) reread() {
	r.unloaded = false
	// The packet has not changed, so Next reads the same event. Its time depends on the previous event, so the clock
	// is restored.
	m := &r.m
	clock, operations, time := m.clock, m.operations, r.Event.Clock
	m.pos, m.operations = r.at, math.MaxUint64
	r.Next()
	m.clock, m.operations, r.Event.Clock = clock, operations, time
}

// Finish ends the open packet, and frees large buffers. The numbers in Packet are valid until the next Begin. Its
// fields have no values any more.
func (r *Reader) Finish() {
	if r.m.isLarge() {
		r.release()
	}
	r.m.pos, r.m.end, r.unloaded = 0, 0, false
	r.m.data, r.header.data = nil, nil
	if r.header.isLarge() {
		r.header.slots, r.header.side, r.m.packet = nil, nil, nil
	}
	r.Packet.Values, r.Event.Values = Values{}, Values{}
}

// Held returns the approximate memory of the reader in bytes, without its packet.
func (r *Reader) Held() int {
	const reader, slot = 1 << 10, 8
	return reader + slot*(cap(r.m.slots)+cap(r.header.slots)+cap(r.Event.slots)) + cap(r.m.side) + cap(r.header.side) + cap(r.Event.side)
}

// release frees the memory of an event's values.
func (r *Reader) release() {
	r.m.slots, r.m.side = nil, nil
	r.Event.slots, r.Event.side = nil, nil
}
