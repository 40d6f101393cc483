// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"encoding/binary"

	"github.com/callbraid/callbraid/internal/greys/gp"
)

// Offsets in the header of a reply, and its length.
const (
	codeAt       = 8
	lengthAt     = 12
	headerLength = 16
)

// unknownCode is an undocumented return code.
const unknownCode gp.ReturnCode = 0x7f

// spoil applies a fault to the frame that begins at an offset of the prepared bytes, and may remove them. The caller
// holds the lock.
func (c *gpConn) spoil(fault Fault, begin int) outcome {
	frame := c.out[begin:]
	length := uint32(len(frame) - headerLength)
	switch fault {
	case Close:
		c.out = c.out[:0]
		c.end()
		return ended
	case Restart:
		c.out = c.out[:0]
		c.Restart()
		return ended
	case Silence:
		c.out = c.out[:0]
		c.silent = true
		return ended
	case Cut:
		c.out = c.out[:begin+len(frame)/2]
		c.send()
		c.out = c.out[:0]
		c.end()
		return ended
	case LongFrame:
		binary.BigEndian.PutUint32(frame[lengthAt:], 0xffff_ffff)
		return spoiled
	case WrongLength:
		binary.BigEndian.PutUint32(frame[lengthAt:], max(length, 1)-1)
		return spoiled
	case BrokenData:
		c.out = append(c.out[:begin+headerLength], `{"items":[{"class":`...)
		binary.BigEndian.PutUint32(c.out[begin+lengthAt:], uint32(len(c.out)-begin-headerLength))
		return spoiled
	}
	if r, replaced := replacements[fault]; replaced {
		c.out = append(c.out[:begin+headerLength], r.data...)
		binary.BigEndian.PutUint32(c.out[begin+codeAt:], uint32(r.code))
		binary.BigEndian.PutUint32(c.out[begin+lengthAt:], uint32(len(r.data)))
		return ended
	}
	return sent
}

// replacements are sent in place of a reply.
var replacements = map[Fault]struct {
	code gp.ReturnCode
	data string
}{
	UnknownCode:  {unknownCode, ""},
	Failure:      {gp.Failed, "java.lang.IllegalStateException: it was configured to fail"},
	Unsupported:  {gp.TypeUnsupported, "{}"},
	WrongVersion: {gp.VersionUnsupported, "{}"},
}
