// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import "math"

// A trace has thousands of streams, each with a reader that has read an event ahead or waits
// for its next packet. What each holds then is little, whatever the metadata asks for: the
// values of a large event are given up and read again when it is their turn.

// Rest gives up the values of the event that Next has read, where they take much space; the
// event's class and time hold. Wake has to come before the next call of Next.
func (r *Reader) Rest() {
	if r.m.isLarge() {
		r.release()
		r.resting = true
	}
}

// Wake reads the values again that Rest gave up.
func (r *Reader) Wake() {
	if r.resting {
		r.reread()
	}
}

func (r *Reader) reread() {
	r.resting = false
	// The packet is the same, so this is the same event. Its time needs the one before it.
	m := &r.m
	clock, turns, time := m.clock, m.turns, r.Event.Clock
	m.pos, m.turns = r.at, math.MaxUint64
	r.Next()
	m.clock, m.turns, r.Event.Clock = clock, turns, time
}

// Finish gives up the packet that was begun, and large space. What Packet says of it in
// numbers holds until the next Begin; fields have no values any more.
func (r *Reader) Finish() {
	if r.m.isLarge() {
		r.release()
	}
	r.m.pos, r.m.end, r.resting = 0, 0, false
	r.m.data, r.header.data = nil, nil
	if r.header.isLarge() {
		r.header.slots, r.header.side, r.m.packet = nil, nil, nil
	}
	r.Packet.Values, r.Event.Values = Values{}, Values{}
}

// Held is about how many bytes the reader has in memory beside its packet.
func (r *Reader) Held() int {
	const reader, slot = 1 << 10, 8
	return reader + slot*(cap(r.m.slots)+cap(r.header.slots)+cap(r.Event.slots)) + cap(r.m.side) + cap(r.header.side) + cap(r.Event.side)
}

// release gives up the space of an event's values.
func (r *Reader) release() {
	r.m.slots, r.m.side = nil, nil
	r.Event.slots, r.Event.side = nil, nil
}
