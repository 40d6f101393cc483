// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// cursor reads msgpack from a message. After something is wrong it reads nothing more.
//
// The first bytes that nearly all values here have are read here, everything else by
// msgp.
type cursor struct {
	rest []byte
	size int // of the message
	err  *ProtocolError
}

func newCursor(message []byte) cursor { return cursor{rest: message, size: len(message)} }

// offset is where the cursor stands.
func (c *cursor) offset() int { return c.size - len(c.rest) }

// failure is what was wrong, as an error.
func (c *cursor) failure() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// fail notes what is wrong where the cursor stands.
func (c *cursor) fail(problem Problem, expected, got string) {
	if c.err == nil {
		c.err = &ProtocolError{Problem: problem, Offset: c.offset(), Expected: expected, Got: got}
	}
	c.rest = nil
}

// wrong notes what msgp says is wrong where the cursor stands.
func (c *cursor) wrong(expected string, err error) {
	var below msgp.UintBelowZero
	var above msgp.UintOverflow
	switch {
	case errors.Is(err, msgp.ErrShortBytes):
		c.fail(Truncated, expected, fmt.Sprintf("the end of the message after %d bytes", c.size))
	case errors.As(err, &below):
		c.fail(WrongValue, expected, fmt.Sprint(below.Value))
	case errors.As(err, &above):
		c.fail(WrongValue, expected, fmt.Sprint(above.Value))
	default:
		c.fail(WrongType, expected, fmt.Sprintf("%s (%#02x)", msgp.NextType(c.rest), c.rest[0]))
	}
}

// First bytes of msgpack's values, with the bits that are part of the value.
const (
	firstMap, firstMapBits     = 0x80, 0x0f
	firstArray, firstArrayBits = 0x90, 0x0f
	firstText, firstTextBits   = 0xa0, 0x1f
	firstNil                   = 0xc0
	firstFloat64               = 0xcb
	firstUint16, firstUint32   = 0xcd, 0xce
	lastSmall                  = 0x7f // the largest number that is its own first byte
)

// mapping reads the head of a map, and gives how many pairs it has.
func (c *cursor) mapping(expected string) (pairs int) {
	if len(c.rest) > 0 && c.rest[0]&^firstMapBits == firstMap {
		pairs = int(c.rest[0] & firstMapBits)
		c.rest = c.rest[1:]
		return pairs
	}
	n, rest, err := msgp.ReadMapHeaderBytes(c.rest)
	if err != nil {
		c.wrong(expected, err)
		return 0
	}
	c.rest = rest
	return int(n)
}

// array reads the head of an array, and gives how many elements it has.
func (c *cursor) array(expected string) (elements int) {
	if len(c.rest) > 0 && c.rest[0]&^firstArrayBits == firstArray {
		elements = int(c.rest[0] & firstArrayBits)
		c.rest = c.rest[1:]
		return elements
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(c.rest)
	if err != nil {
		c.wrong(expected, err)
		return 0
	}
	c.rest = rest
	return int(n)
}

// number reads a number that is not negative.
func (c *cursor) number(expected string) uint64 {
	b := c.rest
	if len(b) >= 5 {
		switch {
		case b[0] <= lastSmall:
			c.rest = b[1:]
			return uint64(b[0])
		case b[0] == firstUint32:
			c.rest = b[5:]
			return uint64(binary.BigEndian.Uint32(b[1:]))
		case b[0] == firstUint16:
			c.rest = b[3:]
			return uint64(binary.BigEndian.Uint16(b[1:]))
		}
	}
	n, rest, err := msgp.ReadUint64Bytes(b)
	if err != nil {
		c.wrong(expected, err)
		return 0
	}
	c.rest = rest
	return n
}

// null reads nil, if that is what stands there.
func (c *cursor) null() bool {
	if len(c.rest) > 0 && c.rest[0] == firstNil {
		c.rest = c.rest[1:]
		return true
	}
	return false
}

// text reads a text, as str, as raw of the old msgpack, or as bin. It is nil for nil, and
// otherwise not.
func (c *cursor) text(expected string) []byte {
	b := c.rest
	if len(b) > 0 && b[0]&^firstTextBits == firstText {
		if end := 1 + int(b[0]&firstTextBits); end <= len(b) {
			c.rest = b[end:]
			return b[1:end:end]
		}
	}
	if c.null() {
		return nil
	}
	var v, rest []byte
	var err error
	if msgp.NextType(b) == msgp.BinType {
		v, rest, err = msgp.ReadBytesZC(b)
	} else {
		v, rest, err = msgp.ReadStringZC(b)
	}
	if err != nil {
		c.wrong(expected, err)
		return nil
	}
	c.rest = rest
	return v
}

// key reads the key of a pair. One that is no number of ours is passed over, and noKey.
func (c *cursor) key() uint64 {
	if len(c.rest) > 0 && c.rest[0] <= lastSmall {
		k := c.rest[0]
		c.rest = c.rest[1:]
		return uint64(k)
	}
	if t := msgp.NextType(c.rest); t == msgp.UintType || t == msgp.IntType && c.rest[0] < firstNegative {
		if n, rest, err := msgp.ReadUint64Bytes(c.rest); err == nil {
			c.rest = rest
			return n
		}
	}
	c.skip()
	return noKey
}

const (
	noKey         = math.MaxUint64
	firstNegative = 0xe0
)

// maxMilliseconds is the last time that Unix nanoseconds in 64 bits have.
const maxMilliseconds = math.MaxInt64 / 1e6

// time reads a time: whole milliseconds in a float64, as a rule.
func (c *cursor) time() Time {
	const expected = "a time, in milliseconds since 1970"
	var ms float64
	var rest []byte
	var err error
	switch t := msgp.NextType(c.rest); {
	case len(c.rest) >= 9 && c.rest[0] == firstFloat64:
		ms, rest = math.Float64frombits(binary.BigEndian.Uint64(c.rest[1:])), c.rest[9:]
	case t == msgp.IntType || t == msgp.UintType:
		var n int64
		n, rest, err = msgp.ReadInt64Bytes(c.rest)
		ms = float64(n)
	default:
		ms, rest, err = msgp.ReadFloat64Bytes(c.rest)
	}
	switch {
	case err != nil:
		c.wrong(expected, err)
		return 0
	case !(ms >= 0 && ms <= maxMilliseconds): // NaN too
		c.fail(WrongValue, expected, fmt.Sprint(ms))
		return 0
	}
	c.rest = rest
	return Time(ms)
}

// skip passes over a value, however deep it is, in a loop.
func (c *cursor) skip() {
	const expected = "a value"
	for values := uint64(1); values > 0 && c.err == nil; values-- {
		switch msgp.NextType(c.rest) {
		case msgp.MapType:
			values += 2 * uint64(c.mapping(expected))
		case msgp.ArrayType:
			values += uint64(c.array(expected))
		default:
			rest, err := msgp.Skip(c.rest)
			if err != nil {
				c.wrong(expected, err)
				return
			}
			c.rest = rest
		}
	}
}

// messageType is the type of a message. The cursor stands anywhere then.
func (c *cursor) messageType() (eventType uint64, ok bool) {
	for range c.mapping("a message: a map") {
		switch key := c.key(); {
		case c.err != nil:
			return 0, false
		case key == fieldType:
			eventType = c.number("the type of an event")
			return eventType, c.err == nil
		}
		c.skip()
	}
	c.fail(Missing, "a message with a type", "none")
	return 0, false
}
