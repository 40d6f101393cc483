// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"bytes"
	"encoding/binary"
)

// Forms of values of DWARF 2 to 5 (DWARF 5, table 7.6) that the first entry of a unit can have.
const (
	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUStrpAlt    = 0x1f21
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

// skip skips a value. Of an unknown form, it fails.
func (c *cursor) skip(form uint64, addressSize int) {
	switch form {
	case formFlagPresent, formImplicitConst:
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		c.bytes(1)
	case formData2, formRef2, formStrx2, formAddrx2:
		c.bytes(2)
	case formStrx3, formAddrx3:
		c.bytes(3)
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		c.bytes(4)
	case formData8, formRef8, formRefSig8, formRefSup8:
		c.bytes(8)
	case formData16:
		c.bytes(16)
	case formAddr:
		c.bytes(uint64(addressSize))
	case formStrp, formSecOffset, formStrpSup, formLineStrp, formGNUStrpAlt:
		c.offset()
	case formSdata, formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
		c.uleb()
	case formString:
		c.text()
	case formBlock1:
		c.bytes(uint64(c.u8()))
	case formBlock2:
		c.bytes(uint64(c.u16()))
	case formBlock4:
		c.bytes(uint64(c.u32()))
	case formBlock, formExprloc:
		c.bytes(c.uleb())
	default:
		c.failed = true
	}
}
