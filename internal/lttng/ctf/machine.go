// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"bytes"
	"encoding/binary"
	"math"
)

// machine executes programs on a packet.
type machine struct {
	data []byte
	// pos is the next bit of data, end the bit after the content.
	pos, end uint64
	// slots are the values: the fixed ones of the root frame, then the elements of arrays in the order of reading, up
	// to top.
	slots []uint64
	top   int
	// packet holds the values of the packet's header and context, for sources in these.
	packet []uint64
	// side holds copies of bytes that did not begin at a byte.
	side []byte
	// bases are the first slots of the open frames.
	bases [maxNesting + 2]int
	// budget is the number of values that the arrays of this event may still have. operations is the number of
	// operations that the packet may still execute.
	budget     int
	operations uint64

	// class is the last event class ID, clock is the last value of the clock.
	class, clock uint64
	// variableBits is the size of the last LEB128.
	variableBits uint8

	// fault is the reason why the last execution failed, faultAt the index of the operation.
	fault   fault
	faultAt int
	// wanted is the number in the fault's message.
	wanted uint64
}

// fault is a contradiction between a packet and its metadata.
type fault uint8

const (
	faultNone fault = iota
	faultEnd
	faultString
	faultVariable
	faultSelector
	faultElements
	faultOperations
	faultBytes
)

// reserve adds n slots after top and moves top.
func (m *machine) reserve(n int) {
	m.top += n
	if m.top > len(m.slots) {
		m.slots = append(m.slots, make([]uint64, max(m.top-len(m.slots), len(m.slots)))...)
	}
}

// isLarge reports whether the values use more memory than a reader may hold between packets.
func (m *machine) isLarge() bool { return len(m.slots) > keptSlots || cap(m.side) > keptBytes }

// maxArrayValues returns the maximum number of values in the arrays of data of this many bits.
func maxArrayValues(bits uint64) int { return int(min(maxElements, freeElements+bits)) }

// source returns the value that an operation refers to.
func (m *machine) source(o *op) uint64 {
	if o.frame == 0 {
		return m.packet[o.source]
	}
	return m.slots[m.bases[o.frame]+int(o.source)]
}

// fail records why the operation at pc failed.
func (m *machine) fail(pc int, pos uint64, why fault, wanted uint64) bool {
	m.faultAt, m.pos, m.fault, m.wanted = pc, pos, why, wanted
	return false
}

// exec executes the operations from pc up to stop, without stop, in a frame. If the packet does not fit them, it
// returns false and sets fault, faultAt and pos.
func (m *machine) exec(p *program, pc, stop int, frame int) bool {
	data, pos, end := m.data, m.pos, m.end
	slots := m.slots[m.bases[frame]:]
	run := uint64(0)
	for pc < stop {
		o := &p.ops[pc]
		pc++
		switch o.code {
		case opAlign:
			pos = (pos + uint64(o.n) - 1) &^ (uint64(o.n) - 1)
			if pos > end {
				return m.fail(pc-1, pos, faultEnd, 0)
			}
		case opRun:
			run = pos
			pos += uint64(o.n)
			if pos > end {
				return m.fail(pc-1, run, faultEnd, uint64(o.n))
			}
		case opUint8:
			slots[o.slot] = uint64(data[(run+uint64(o.n))>>3])
		case opInt8:
			slots[o.slot] = uint64(int8(data[(run+uint64(o.n))>>3]))
		case opUint16LE:
			slots[o.slot] = uint64(binary.LittleEndian.Uint16(data[(run+uint64(o.n))>>3:]))
		case opInt16LE:
			slots[o.slot] = uint64(int16(binary.LittleEndian.Uint16(data[(run+uint64(o.n))>>3:])))
		case opUint32LE:
			slots[o.slot] = uint64(binary.LittleEndian.Uint32(data[(run+uint64(o.n))>>3:]))
		case opInt32LE:
			slots[o.slot] = uint64(int32(binary.LittleEndian.Uint32(data[(run+uint64(o.n))>>3:])))
		case opUint64LE:
			slots[o.slot] = binary.LittleEndian.Uint64(data[(run+uint64(o.n))>>3:])
		case opFloat32LE:
			slots[o.slot] = widen(binary.LittleEndian.Uint32(data[(run+uint64(o.n))>>3:]))
		case opUint16BE:
			slots[o.slot] = uint64(binary.BigEndian.Uint16(data[(run+uint64(o.n))>>3:]))
		case opInt16BE:
			slots[o.slot] = uint64(int16(binary.BigEndian.Uint16(data[(run+uint64(o.n))>>3:])))
		case opUint32BE:
			slots[o.slot] = uint64(binary.BigEndian.Uint32(data[(run+uint64(o.n))>>3:]))
		case opInt32BE:
			slots[o.slot] = uint64(int32(binary.BigEndian.Uint32(data[(run+uint64(o.n))>>3:])))
		case opUint64BE:
			slots[o.slot] = binary.BigEndian.Uint64(data[(run+uint64(o.n))>>3:])
		case opFloat32BE:
			slots[o.slot] = widen(binary.BigEndian.Uint32(data[(run+uint64(o.n))>>3:]))
		case opRange:
			slots[o.slot] = place((run+uint64(o.n))>>3, uint64(o.source))
		case opUintBitsLE:
			slots[o.slot] = bitsLE(data, run+uint64(o.n), o.bits)
		case opIntBitsLE:
			slots[o.slot] = signExtend(bitsLE(data, run+uint64(o.n), o.bits), o.bits)
		case opUintBitsBE:
			slots[o.slot] = bitsBE(data, run+uint64(o.n), o.bits)
		case opIntBitsBE:
			slots[o.slot] = signExtend(bitsBE(data, run+uint64(o.n), o.bits), o.bits)
		case opWiden:
			slots[o.slot] = widen(uint32(slots[o.slot]))
		case opString:
			from := pos >> 3
			n, ok := terminated(data[from:end>>3], o.bits)
			if !ok {
				return m.fail(pc-1, pos, faultString, 0)
			}
			slots[o.slot] = place(from, n)
			pos += (n + uint64(o.bits)) << 3
		case opBytes, opBytesSource:
			n := uint64(o.n)
			if o.code == opBytesSource {
				n = m.source(o)
			}
			if n > (end-pos)>>3 {
				return m.fail(pc-1, pos, faultBytes, n)
			}
			slots[o.slot] = place(pos>>3, n)
			pos += n << 3
		case opGather, opGatherSource:
			n := uint64(o.n)
			if o.code == opGatherSource {
				n = m.source(o)
			}
			if n > (end-pos)>>3 {
				return m.fail(pc-1, pos, faultBytes, n)
			}
			if pos&7 == 0 {
				slots[o.slot] = place(pos>>3, n)
			} else {
				slots[o.slot] = place(uint64(len(data)+len(m.side)), n)
				m.side = gather(m.side, data, pos, n, o.bits != 0)
			}
			pos += n << 3
		case opUintVariable, opIntVariable:
			value, n := variable(data[pos>>3:end>>3], o.code == opIntVariable)
			if n == 0 {
				return m.fail(pc-1, pos, faultVariable, 0)
			}
			slots[o.slot] = value
			m.variableBits = uint8(n * 7)
			pos += uint64(n) << 3
		case opNumbers:
			m.pos = pos
			if !m.numbers(p, pc-1, frame) {
				return false
			}
			pos, slots = m.pos, m.slots[m.bases[frame]:]
		case opArray:
			m.pos = pos
			if !m.array(p, pc-1, frame) {
				return false
			}
			pos, slots = m.pos, m.slots[m.bases[frame]:]
			pc = int(p.arrays[o.n].end)
		case opSelect:
			value := m.source(o)
			if o.signed {
				value ^= 1 << 63
			}
			table := &p.tables[o.n]
			if s := table.find(value); s != nil {
				slots[o.slot], pc = uint64(s.option), int(s.target)
			} else if table.otherwise >= 0 {
				slots[o.slot], pc = noOption, int(table.otherwise)
			} else {
				return m.fail(pc-1, pos, faultSelector, m.source(o))
			}
		case opJump:
			pc = int(o.n)
		case opEventClass:
			m.class = slots[o.slot]
		case opClock:
			size := o.bits
			if size == 0 {
				size = m.variableBits
			}
			m.clock = extend(m.clock, slots[o.slot], size)
		}
	}
	m.pos = pos
	return true
}

// noOption is the value of an optional field that is absent.
const noOption = math.MaxUint64

// place packs the first byte and the length of bytes into a value.
func place(from, n uint64) uint64 { return from<<32 | n }

// widen returns the bits of the float64 that equals a float32 with these bits.
func widen(bits uint32) uint64 {
	return math.Float64bits(float64(math.Float32frombits(bits)))
}

// terminated returns the number of bytes before the first NUL of unit bytes.
func terminated(data []byte, unit uint8) (uint64, bool) {
	if unit == 1 {
		n := bytes.IndexByte(data, 0)
		return uint64(n), n >= 0
	}
	for n := 0; n+int(unit) <= len(data); n += int(unit) {
		if isZero(data[n : n+int(unit)]) {
			return uint64(n), true
		}
	}
	return 0, false
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
