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

// cursor reads msgpack from a message. After an error it reads nothing more.
//
// It reads the first bytes of nearly all values itself, and everything else with msgp.
type cursor struct {
	message []byte // nil after an error
	at      int    // never beyond the end of the message
	err     *ProtocolError
}

func newCursor(message []byte) cursor { return cursor{message: message} }

// rest returns the bytes from the cursor on.
func (c *cursor) rest() []byte { return c.message[c.at:] }

// moveToRest moves the cursor to the begin of rest.
func (c *cursor) moveToRest(rest []byte) { c.at = len(c.message) - len(rest) }

// failure returns the noted problem as an error.
func (c *cursor) failure() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// fail notes a problem at the position of the cursor.
func (c *cursor) fail(problem Problem, expected, got string) {
	if c.err == nil {
		c.err = &ProtocolError{Problem: problem, Offset: c.at, Expected: expected, Got: got}
	}
	c.message, c.at = nil, 0
}

// failAsMsgp notes an error of msgp at the position of the cursor.
func (c *cursor) failAsMsgp(expected string, err error) {
	var below msgp.UintBelowZero
	var above msgp.UintOverflow
	switch {
	case errors.Is(err, msgp.ErrShortBytes):
		c.fail(Truncated, expected, fmt.Sprintf("the end of the message after %d bytes", len(c.message)))
	case errors.As(err, &below):
		c.fail(WrongValue, expected, fmt.Sprint(below.Value))
	case errors.As(err, &above):
		c.fail(WrongValue, expected, fmt.Sprint(above.Value))
	default:
		c.fail(WrongType, expected, fmt.Sprintf("%s (%#02x)", msgp.NextType(c.rest()), c.message[c.at]))
	}
}

// First bytes of msgpack's values, with the bits that are part of the value.
const (
	firstMap, firstMapBits     = 0x80, 0x0f
	firstArray, firstArrayBits = 0x90, 0x0f
	firstText, firstTextBits   = 0xa0, 0x1f
	firstArray16               = 0xdc
	firstNil                   = 0xc0
	firstFloat64               = 0xcb
	firstUint8                 = 0xcc
	firstUint16, firstUint32   = 0xcd, 0xce
	firstBytes32               = 0xc6
	firstExtension32           = 0xc9
	lastSmall                  = 0x7f // the largest number with one byte
)

// Sizes of numbers with their first byte, and of the head of a longer array.
const (
	sizeUint8, sizeUint16, sizeUint32, sizeFloat64 = 2, 3, 5, 9
	sizeArray16                                    = 3
)

// mapping reads the head of a map, and returns the number of its pairs, at most the number of
// bytes that follow.
func (c *cursor) mapping(expected string) (pairs int) {
	if c.at < len(c.message) && c.message[c.at]&^firstMapBits == firstMap {
		pairs = int(c.message[c.at] & firstMapBits)
		c.at++
		return pairs
	}
	n, rest, err := msgp.ReadMapHeaderBytes(c.rest())
	if err != nil {
		c.failAsMsgp(expected, err)
		return 0
	}
	c.moveToRest(rest)
	return c.atMost(n)
}

// array reads the head of an array, and returns the number of its elements, at most the number of
// bytes that follow.
func (c *cursor) array(expected string) (elements int) {
	if c.at < len(c.message) && c.message[c.at]&^firstArrayBits == firstArray {
		elements = int(c.message[c.at] & firstArrayBits)
		c.at++
		return elements
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(c.rest())
	if err != nil {
		c.failAsMsgp(expected, err)
		return 0
	}
	c.moveToRest(rest)
	return c.atMost(n)
}

// atMost bounds an announced number of values. Each has at least one byte, so a larger number
// fails at the end of the bytes.
func (c *cursor) atMost(announced uint32) int {
	return int(min(uint64(announced), uint64(len(c.rest()))+1))
}

// number reads a number that is not negative.
func (c *cursor) number(expected string) uint64 {
	if n, behind := usualNumber(c.message, c.at); behind > 0 {
		c.at = behind
		return n
	}
	return c.rareNumber(expected)
}

func (c *cursor) rareNumber(expected string) uint64 {
	n, rest, err := msgp.ReadUint64Bytes(c.rest())
	if err != nil {
		c.failAsMsgp(expected, err)
		return 0
	}
	c.moveToRest(rest)
	return n
}

// usualNumber returns a number in the encoding of nearly all numbers, and the place after it. The
// place is 0 for another encoding.
func usualNumber(message []byte, at int) (number uint64, behind int) {
	b := message[at:]
	if len(b) < sizeUint32 {
		return 0, 0
	}
	switch b[0] {
	case firstUint8:
		return uint64(b[1]), at + sizeUint8
	case firstUint16:
		return uint64(binary.BigEndian.Uint16(b[1:])), at + sizeUint16
	case firstUint32:
		return uint64(binary.BigEndian.Uint32(b[1:])), at + sizeUint32
	}
	if b[0] > lastSmall {
		return 0, 0
	}
	return uint64(b[0]), at + 1
}

// usualCount returns the number of elements of an array in the usual encoding, and the place
// after its head. The place is 0 for another encoding, or a very long array.
func usualCount(message []byte, at int) (elements, behind int) {
	if at+sizeArray16 > len(message) {
		return 0, 0
	}
	switch b := message[at : at+sizeArray16]; {
	case b[0]&^firstArrayBits == firstArray:
		return int(b[0] & firstArrayBits), at + 1
	case b[0] == firstArray16:
		return int(binary.BigEndian.Uint16(b[1:])), at + sizeArray16
	}
	return 0, 0
}

// usualText returns a text, or nil, in the usual encoding, and the place after it. The place is 0
// for another encoding.
func usualText(message []byte, at int) (text []byte, behind int) {
	if at >= len(message) {
		return nil, 0
	}
	first := message[at]
	at++
	size := int(first & firstTextBits)
	if first&^firstTextBits != firstText {
		switch {
		case first == firstNil:
			return nil, at
		case first == firstText8 && at < len(message):
			size = int(message[at])
			at++
		case first == firstText16 && at+2 <= len(message):
			size = int(binary.BigEndian.Uint16(message[at:]))
			at += 2
		default:
			return nil, 0
		}
	}
	if behind = at + size; behind > len(message) {
		return nil, 0
	}
	return message[at:behind:behind], behind
}

// follows reads a byte, if it is the next one.
func (c *cursor) follows(b byte) bool {
	if c.at < len(c.message) && c.message[c.at] == b {
		c.at++
		return true
	}
	return false
}

// null reads nil, if it is the next value.
func (c *cursor) null() bool { return c.follows(firstNil) }

// text reads a text: str, raw of the old msgpack, or bin. The text is nil only for nil.
func (c *cursor) text(expected string) []byte {
	if c.at < len(c.message) && c.message[c.at]&^firstTextBits == firstText {
		begin := c.at + 1
		if end := begin + int(c.message[c.at]&firstTextBits); end <= len(c.message) {
			c.at = end
			return c.message[begin:end:end]
		}
	}
	if c.null() {
		return nil
	}
	return c.rareText(expected)
}

func (c *cursor) rareText(expected string) []byte {
	if c.isCutOff(expected) {
		return nil
	}
	read := msgp.ReadStringZC
	if msgp.NextType(c.rest()) == msgp.BinType {
		read = msgp.ReadBytesZC
	}
	text, rest, err := read(c.rest())
	if err != nil {
		c.failAsMsgp(expected, err)
		return nil
	}
	c.moveToRest(rest)
	return text
}

// isCutOff reports whether a value with a size of 32 bits has fewer bytes than that, which is an
// error. If int has 32 bits, msgp would read such a size as another one.
func (c *cursor) isCutOff(expected string) bool {
	const head = 5 // the first byte and the size
	b := c.rest()
	if len(b) < head || b[0] != firstBytes32 && b[0] != firstExtension32 && b[0] != firstText32 {
		return false
	}
	if uint64(binary.BigEndian.Uint32(b[1:])) <= uint64(len(b)-head) {
		return false
	}
	c.failAsMsgp(expected, msgp.ErrShortBytes)
	return true
}

// key reads the key of a pair. It skips a key that is no known number, and returns noKey.
func (c *cursor) key() uint64 {
	if c.at < len(c.message) && c.message[c.at] <= lastSmall {
		c.at++
		return uint64(c.message[c.at-1])
	}
	if t := msgp.NextType(c.rest()); t == msgp.UintType || t == msgp.IntType {
		if n, rest, err := msgp.ReadUint64Bytes(c.rest()); err == nil {
			c.moveToRest(rest)
			return n
		}
	}
	c.skip()
	return noKey
}

const noKey = math.MaxUint64

// maxMilliseconds is the last time of Unix nanoseconds in 64 bits.
const maxMilliseconds = math.MaxInt64 / 1e6

const expectedTime = "a time, in milliseconds since 1970"

// time reads a time, usually whole milliseconds in a float64.
func (c *cursor) time() Time {
	if c.at+sizeFloat64 <= len(c.message) && c.message[c.at] == firstFloat64 {
		ms := math.Float64frombits(binary.BigEndian.Uint64(c.message[c.at+1:]))
		if ms >= 0 && ms <= maxMilliseconds {
			c.at += sizeFloat64
			return Time(ms)
		}
	}
	return c.rareTime()
}

func (c *cursor) rareTime() Time {
	var ms float64
	var rest []byte
	var err error
	switch msgp.NextType(c.rest()) {
	case msgp.IntType, msgp.UintType:
		var n int64
		n, rest, err = msgp.ReadInt64Bytes(c.rest())
		ms = float64(n)
	default:
		ms, rest, err = msgp.ReadFloat64Bytes(c.rest())
	}
	switch {
	case err != nil:
		c.failAsMsgp(expectedTime, err)
		return 0
	case !(ms >= 0 && ms <= maxMilliseconds): // also NaN
		c.fail(WrongValue, expectedTime, fmt.Sprint(ms))
		return 0
	}
	c.moveToRest(rest)
	return Time(ms)
}

// skip skips a value of any depth, in a loop.
func (c *cursor) skip() {
	const expected = "a value"
	for values := uint64(1); values > 0 && c.err == nil; values-- {
		switch msgp.NextType(c.rest()) {
		case msgp.MapType:
			values += 2 * uint64(c.mapping(expected))
		case msgp.ArrayType:
			values += uint64(c.array(expected))
		default:
			if c.isCutOff(expected) {
				return
			}
			rest, err := msgp.Skip(c.rest())
			if err != nil {
				c.failAsMsgp(expected, err)
				return
			}
			c.moveToRest(rest)
		}
	}
}

// messageType returns the type of a message, and leaves the cursor anywhere.
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
