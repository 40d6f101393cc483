// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/binary"
	"math"
)

// Most of what servers send are objects: those that were created and destroyed, one by one,
// and those of dumps. Servers write them in one way, with keys in one order, IDs of up to
// 32 bits, and classes of up to 31 bytes. What is here looks for just that, in a third of
// the time. Whatever is written otherwise is left to the rest of the decoder, which gives
// the same for what is plain.

const (
	// plainHead is the bytes of an event before its ID: 83 00 TYPE 01 cb TIME 02 8N 03.
	plainHead = 16
	// plainBegin and plainBeginMask are its first five bytes, but for the type.
	plainBegin     = 0x83_00_00_01_cb_00_00_00
	plainBeginMask = 0xff_ff_00_ff_ff_00_00_00
	// plainCreated and plainDestroyed are its last three: the payload is a map of two
	// entries or one, the first of them the ID.
	plainCreated   = keyPayload<<16 | 0x82<<8 | keyObjectID
	plainDestroyed = keyPayload<<16 | 0x81<<8 | keyObjectID
	leadUint8      = 0xcc
	leadUint16     = 0xcd
)

// plainObject reads an event of an object of the released dialect, if that is what stands
// next, and tells the visitor of it.
func (d *Decoder) plainObject() bool {
	b := d.in.rest()
	if len(b) < plainHead || binary.BigEndian.Uint64(b)&plainBeginMask != plainBegin {
		return false
	}
	t := math.Float64frombits(binary.BigEndian.Uint64(b[5:]))
	if !(t >= 0 && t <= maxMillis) {
		return false
	}
	id, at := plainUint(b, plainHead)
	if at == 0 {
		return false
	}
	switch kind := binary.BigEndian.Uint32(b[plainHead-4:]) & 0xff_ff_ff; {
	case kind == plainDestroyed && b[2] == releasedDestroyed:
		d.in.at += at
		d.visitor.ObjectDestroyed(int64(t), id)
		return true
	case kind == plainCreated && b[2] == releasedCreated && at < len(b) && b[at] == keyClass:
		class, at := plainText(b, at+1)
		if at == 0 {
			return false
		}
		d.in.at += at
		d.visitor.ObjectCreated(int64(t), id, class)
		return true
	default:
		return false
	}
}

const (
	// plainObjectEntries is the header of the map of an object of a dump.
	plainObjectEntries = 0x86
	minFixArray        = 0x90
	maxFixArray        = 0x9f
)

// plainDumped reads an object of a dump into d.object, if what stands next is written as
// most are: with up to 15 references, and without a file.
func (d *Decoder) plainDumped() bool {
	b := d.in.rest()
	if len(b) < 2 || b[0] != plainObjectEntries || b[1] != keyObjectID {
		return false
	}
	id, at := plainUint(b, 2)
	if at == 0 || at >= len(b) || b[at] != keyClass {
		return false
	}
	class, at := plainText(b, at+1)
	if at == 0 || at+1 >= len(b) || b[at] != keyReferences || b[at+1] < minFixArray || b[at+1] > maxFixArray {
		return false
	}
	references := References{n: uint32(b[at+1] - minFixArray)}
	at += 2
	begin := at
	for range references.n {
		if at+5 <= len(b) && b[at] == leadUint32 {
			at += 5
		} else if _, at = plainUint(b, at); at == 0 {
			return false
		}
	}
	references.packed = b[begin:at:at]
	if at+5 > len(b) || b[at] != keyFile || b[at+1] != leadNil || b[at+2] != keyLine || b[at+3] != leadNil || b[at+4] != keySize {
		return false
	}
	size, at := plainUint(b, at+5)
	if at == 0 {
		return false
	}
	d.in.at += at
	// Field by field: a whole structure would be made and copied.
	o := &d.object
	o.ID, o.Class, o.References = id, class, references
	o.File, o.Line, o.HasLine = nil, 0, false
	o.Size, o.HasSize = size, true
	return true
}

// plainUint is the number at a place, if it has up to 32 bits, and where it ends; 0: it is
// none.
func plainUint(b []byte, at int) (n uint64, end int) {
	if at >= len(b) {
		return 0, 0
	}
	switch lead, rest := b[at], b[at+1:]; {
	case lead <= maxFixInt:
		return uint64(lead), at + 1
	case lead == leadUint32 && len(rest) >= 4:
		return uint64(binary.BigEndian.Uint32(rest)), at + 5
	case lead == leadUint16 && len(rest) >= 2:
		return uint64(binary.BigEndian.Uint16(rest)), at + 3
	case lead == leadUint8 && len(rest) >= 1:
		return uint64(rest[0]), at + 2
	default:
		return 0, 0
	}
}

// plainText is the text at a place, if it is nil or has up to 31 bytes, and where it ends;
// 0: it is none.
func plainText(b []byte, at int) (text []byte, end int) {
	if at >= len(b) {
		return nil, 0
	}
	lead := b[at]
	at++
	if lead == leadNil {
		return nil, at
	}
	end = at + int(lead) - minFixText
	if lead < minFixText || lead > maxFixText || end > len(b) {
		return nil, 0
	}
	return b[at:end:end], end
}
