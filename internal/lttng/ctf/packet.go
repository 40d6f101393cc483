// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import "github.com/callbraid/callbraid/internal/lttng/ctf/metadata"

// packetMagic is the value of a packet's magic number.
const packetMagic = 0xC1FC1FC1

// Packet holds the values of the header and the context of a packet.
type Packet struct {
	// Values are those of the fields of packet header and context.
	Values
	Class *StreamClass
	// Content and Size are in bits. If the packet has no such fields, they are the size of the bytes passed to Begin.
	Content, Size uint64
	// Begin and End are values of the clock.
	Begin, End uint64
	// Sequence counts the packets of the stream, from 0.
	Sequence uint64
	// Discarded counts the events of the stream that the tracer discarded up to the end of this packet, because its
	// buffers were full.
	Discarded uint64
	// Instance distinguishes the streams of one class.
	Instance uint64

	// roles are those of the fields that the packet has.
	roles metadata.Role
	// sequenceBits and discardedBits are the sizes of the counters.
	sequenceBits, discardedBits uint8
	// class is the stream class's ID.
	class uint64
	// begun is the first bit after the context.
	begun uint64
}

// Has reports whether the packet has a field of this role. If not, the corresponding Begin, End, Sequence, Discarded,
// Instance, Content or Size is 0 or derived from other values.
func (p *Packet) Has(role metadata.Role) bool { return p.roles&role != 0 }

// set stores the value of a field that has a role.
func (p *Packet) set(f *Field) {
	value := p.Uint(f)
	p.roles |= f.roles
	for role := f.roles; role != 0; role &= role - 1 {
		switch role & -role {
		case metadata.RoleStreamClass:
			p.class = value
		case metadata.RoleStreamInstance:
			p.Instance = value
		case metadata.RoleClock:
			p.Begin = value
		case metadata.RolePacketEnd:
			p.End = value
		case metadata.RoleContentSize:
			p.Content = value
		case metadata.RolePacketSize:
			p.Size = value
		case metadata.RoleSequence:
			p.Sequence, p.sequenceBits = value, sizeOf(f)
		case metadata.RoleDiscarded:
			p.Discarded, p.discardedBits = value, sizeOf(f)
		}
	}
}
