// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"bytes"
	"encoding/binary"
)

// cursor reads values of DWARF from bytes. After the first value that the bytes do not hold completely, failed is set and
// every value is 0.
type cursor struct {
	data   []byte
	at     int
	order  binary.ByteOrder
	failed bool
	// is64 is set if offsets have 8 bytes (the 64-bit format).
	is64 bool
}

// bytes returns the next n bytes, or nil.
func (c *cursor) bytes(n uint64) []byte {
	if c.failed || n > uint64(len(c.data)-c.at) {
		c.failed = true
		return nil
	}
	b := c.data[c.at : c.at+int(n)]
	c.at += int(n)
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return c.order.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return c.order.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return c.order.Uint64(b)
	}
	return 0
}

// offset returns an offset or a length of the unit's format.
func (c *cursor) offset() uint64 {
	if c.is64 {
		return c.u64()
	}
	return uint64(c.u32())
}

// unitLength returns the length of the unit that begins here, and sets the format of its offsets.
func (c *cursor) unitLength() uint64 {
	length := uint64(c.u32())
	c.is64 = length == 0xffffffff
	if c.is64 {
		return c.u64()
	}
	return length
}

// uleb returns an unsigned LEB128. Bits beyond 64 are dropped.
func (c *cursor) uleb() uint64 {
	var n uint64
	for shift := uint(0); ; shift += 7 {
		if c.failed || c.at >= len(c.data) {
			c.failed = true
			return 0
		}
		b := c.data[c.at]
		c.at++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

// sleb returns a signed LEB128.
func (c *cursor) sleb() int64 {
	var n int64
	for shift := uint(0); ; {
		b := c.u8()
		n |= int64(b&0x7f) << shift
		shift += 7
		if b < 0x80 {
			if shift < 64 && b&0x40 != 0 {
				n |= -1 << shift
			}
			return n
		}
	}
}

// text returns the bytes up to the next zero byte, and skips that.
func (c *cursor) text() []byte {
	if c.failed {
		return nil
	}
	n := bytes.IndexByte(c.data[c.at:], 0)
	if n < 0 {
		c.failed = true
		return nil
	}
	b := c.data[c.at : c.at+n]
	c.at += n + 1
	return b
}
