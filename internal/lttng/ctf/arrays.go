// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import "encoding/binary"

// beginArray checks the length of the array of an operation, reserves slots for its elements and sets the array's own
// value. It returns the length and the first slot of the elements.
func (m *machine) beginArray(p *program, pc, frame int) (layout *arrayLayout, length, first int, ok bool) {
	o := &p.ops[pc]
	layout = &p.arrays[o.n]
	n := layout.length
	if layout.sourced {
		n = m.source(o)
	}
	if n > uint64(m.budget) {
		return nil, 0, 0, m.fail(pc, m.pos, faultElements, n)
	}
	// The product is below 2^62: see maxMinBits.
	if n*layout.minBits > m.end-m.pos {
		return nil, 0, 0, m.fail(pc, m.pos, faultEnd, n*layout.minBits)
	}
	// An element without slots still costs time.
	cost := n * uint64(max(1, layout.stride))
	if cost > uint64(m.budget) {
		return nil, 0, 0, m.fail(pc, m.pos, faultElements, n)
	}
	m.budget -= int(cost)
	if !m.countOperations(n*uint64(layout.operations) + 1) {
		return nil, 0, 0, m.fail(pc, m.pos, faultOperations, n)
	}
	first = m.top
	m.reserve(int(n) * int(layout.stride))
	m.slots[m.bases[frame]+int(o.slot)] = place(uint64(first), n)
	return layout, int(n), first, true
}

// countOperations counts n operations and reports whether the packet may still have so many. Operations take time,
// but some read no bits of the packet.
func (m *machine) countOperations(n uint64) bool {
	if n > m.operations {
		return false
	}
	m.operations -= n
	return true
}

// array reads the elements of the array whose operation is at pc.
func (m *machine) array(p *program, pc, frame int) bool {
	layout, length, first, ok := m.beginArray(p, pc, frame)
	if !ok {
		return false
	}
	for i := range length {
		m.bases[frame+1] = first + i*int(layout.stride)
		if !m.exec(p, pc+1, int(layout.end), frame+1) {
			return false
		}
	}
	return true
}

// numbers reads the elements of an array of numbers.
func (m *machine) numbers(p *program, pc, frame int) bool {
	layout, length, first, ok := m.beginArray(p, pc, frame)
	if !ok {
		return false
	}
	size := uint64(layout.size)
	data := m.data[m.pos>>3 : m.pos>>3+size*uint64(length)]
	m.pos += size * uint64(length) << 3
	slots := m.slots[first : first+length]
	for i := range slots {
		b := data[uint64(i)*size:]
		switch layout.element {
		case opUint8:
			slots[i] = uint64(b[0])
		case opInt8:
			slots[i] = uint64(int8(b[0]))
		case opUint16LE:
			slots[i] = uint64(binary.LittleEndian.Uint16(b))
		case opInt16LE:
			slots[i] = uint64(int16(binary.LittleEndian.Uint16(b)))
		case opUint32LE:
			slots[i] = uint64(binary.LittleEndian.Uint32(b))
		case opInt32LE:
			slots[i] = uint64(int32(binary.LittleEndian.Uint32(b)))
		case opUint64LE:
			slots[i] = binary.LittleEndian.Uint64(b)
		case opFloat32LE:
			slots[i] = widen(binary.LittleEndian.Uint32(b))
		case opUint16BE:
			slots[i] = uint64(binary.BigEndian.Uint16(b))
		case opInt16BE:
			slots[i] = uint64(int16(binary.BigEndian.Uint16(b)))
		case opUint32BE:
			slots[i] = uint64(binary.BigEndian.Uint32(b))
		case opInt32BE:
			slots[i] = uint64(int32(binary.BigEndian.Uint32(b)))
		case opUint64BE:
			slots[i] = binary.BigEndian.Uint64(b)
		case opFloat32BE:
			slots[i] = widen(binary.BigEndian.Uint32(b))
		}
	}
	return true
}
