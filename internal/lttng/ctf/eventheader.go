// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"encoding/binary"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// fastHeader is one of the two event headers that LTTng writes, which almost all traces have. Either has a short ID
// and a short time, or an escape ID, after which both follow in full. "Compact" packs 5 bits of ID and 27 bits of
// time into four bytes, "large" has 16 and 32 bits in six bytes. Its result equals that of the header's program, in
// fewer steps.
type fastHeader struct {
	large bool
	order binary.ByteOrder
	big   bool
	// The slots of the fields.
	id, variant, time, fullID, fullTime uint32
}

// The sizes of both short headers in bytes, and of the full ID and time after an escape ID.
const (
	compactShort = 4
	largeShort   = 2 + 4
	fullSize     = 4 + 8
	// escapeCompact and escapeLarge are the IDs after which the full ID and time follow.
	escapeCompact = 1<<5 - 1
	escapeLarge   = 1<<16 - 1
)

// newFastHeader returns the event header of a stream class if it is one of the two, or nil.
func newFastHeader(s *StreamClass) *fastHeader {
	root := s.EventHeader
	if len(root.Members) != 2 || root.Members[1].Kind != Variant || root.Type.Alignment() != 8 {
		return nil
	}
	id, variant := root.Members[0], root.Members[1]
	if variant.source != id || len(variant.Members) != 2 {
		return nil
	}
	short, full := variant.Members[0], variant.Members[1]
	if short.Kind != Struct || full.Kind != Struct || len(short.Members) != 1 || len(full.Members) != 2 {
		return nil
	}
	h := &fastHeader{
		id: id.slot, variant: variant.slot, time: short.Members[0].slot,
		fullID: full.Members[0].slot, fullTime: full.Members[1].slot,
	}
	fields := []*Field{id, short.Members[0], full.Members[0], full.Members[1]}
	switch {
	case short.Type.Alignment() == 1 && s.plain(fields, []uint64{5, 27, 32, 64}, []uint64{1, 1, 8, 8}):
	case short.Type.Alignment() == 8 && s.plain(fields, []uint64{16, 32, 32, 64}, []uint64{8, 8, 8, 8}):
		h.large = true
	default:
		return nil
	}
	if full.Type.Alignment() != 8 || !h.selects(s.headerProg.tables) {
		return nil
	}
	h.order = binary.LittleEndian
	if s.Trace.orderOf(id.Type.(*metadata.Integer).Order) == metadata.BigEndian {
		h.order, h.big = binary.BigEndian, true
	}
	return h
}

// plain reports whether the fields are ID, time, ID and time of these sizes and alignments, of one byte order and
// without sign.
func (s *StreamClass) plain(fields []*Field, sizes, aligns []uint64) bool {
	order := metadata.NativeOrder
	for i, f := range fields {
		role := metadata.RoleEventClass
		if i%2 == 1 {
			role = metadata.RoleClock
		}
		t, ok := f.Type.(*metadata.Integer)
		if !ok || t.Variable || t.Signed || t.Size != sizes[i] || t.Align != aligns[i] || f.roles != role {
			return false
		}
		o := s.Trace.orderOf(t.Order)
		if i > 0 && o != order {
			return false
		}
		order = o
	}
	return true
}

// selects reports whether the largest ID selects the full fields, and all other IDs the short ones.
func (h *fastHeader) selects(tables []selector) bool {
	escape := uint64(escapeCompact)
	if h.large {
		escape = escapeLarge
	}
	if len(tables) != 1 || len(tables[0].spans) != 2 {
		return false
	}
	short, full := tables[0].spans[0], tables[0].spans[1]
	return short.low == 0 && short.high == escape-1 && short.option == 0 &&
		full.low == escape && full.high == escape && full.option == 1
}

// read reads an event header at the machine's position.
func (h *fastHeader) read(m *machine) bool {
	at := (m.pos + 7) >> 3
	b := m.data[min(at, m.end>>3) : m.end>>3]
	var id, time uint64
	switch {
	case h.large:
		if len(b) < largeShort {
			return m.fail(0, m.pos, faultEnd, largeShort*8)
		}
		if !h.big {
			id, time = uint64(binary.LittleEndian.Uint16(b)), uint64(binary.LittleEndian.Uint32(b[2:]))
		} else {
			id, time = uint64(binary.BigEndian.Uint16(b)), uint64(binary.BigEndian.Uint32(b[2:]))
		}
		m.slots[h.id] = id
		if id == escapeLarge {
			return h.full(m, b, 2, at)
		}
		m.clock = extend(m.clock, time, 32)
		m.pos = (at + largeShort) << 3
	default:
		if len(b) < compactShort {
			return m.fail(0, m.pos, faultEnd, compactShort*8)
		}
		if !h.big {
			word := binary.LittleEndian.Uint32(b)
			id, time = uint64(word&escapeCompact), uint64(word>>5)
		} else {
			word := binary.BigEndian.Uint32(b)
			id, time = uint64(word>>27), uint64(word&(1<<27-1))
		}
		m.slots[h.id] = id
		if id == escapeCompact {
			return h.full(m, b, 1, at)
		}
		m.clock = extend(m.clock, time, 27)
		m.pos = (at + compactShort) << 3
	}
	m.class = id
	m.slots[h.variant], m.slots[h.time] = 0, time
	return true
}

// full reads the full ID and time at byte n of b. at is the byte of the packet at which b begins.
func (h *fastHeader) full(m *machine, b []byte, n int, at uint64) bool {
	if len(b) < n+fullSize {
		return m.fail(0, m.pos, faultEnd, uint64(n+fullSize)*8)
	}
	m.class = uint64(h.order.Uint32(b[n:]))
	m.clock = h.order.Uint64(b[n+4:])
	m.slots[h.variant], m.slots[h.fullID], m.slots[h.fullTime] = 1, m.class, m.clock
	m.pos = (at + uint64(n) + fullSize) << 3
	return true
}
