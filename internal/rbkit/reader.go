// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// reader reads MessagePack from its front. Its methods say in their errors what was
// expected, and stay where they are then.
type reader struct {
	all []byte
	at  int // of what stands next
}

func newReader(message []byte) reader { return reader{all: message} }

// rest is what was not read.
func (r *reader) rest() []byte { return r.all[r.at:] }

// to goes to where only rest, the end of what is read, was not read.
func (r *reader) to(rest []byte) { r.at = len(r.all) - len(rest) }

// lead is the byte that stands next; at the end it is one that begins nothing.
func (r *reader) lead() byte {
	if r.at < len(r.all) {
		return r.all[r.at]
	}
	return leadNone
}

// Lead bytes of MessagePack that are looked at here; the library knows all.
const (
	maxFixInt  = 0x7f
	minFixText = 0xa0
	maxFixText = 0xbf
	leadNil    = 0xc0
	leadNone   = 0xc1
	leadBin8   = 0xc4
	leadBin32  = 0xc6
	leadFloat  = 0xcb
	leadUint32 = 0xce
	leadStr16  = 0xda
)

func (r *reader) array(expected string) (n uint32, err error) {
	n, rest, err := msgp.ReadArrayHeaderBytes(r.rest())
	if err != nil {
		return 0, r.wrong(expected, err)
	}
	r.to(rest)
	return n, nil
}

func (r *reader) mapping(expected string) (n uint32, err error) {
	n, rest, err := msgp.ReadMapHeaderBytes(r.rest())
	if err != nil {
		return 0, r.wrong(expected, err)
	}
	r.to(rest)
	return n, nil
}

// key reads a key of a map: one of MESSAGE_FIELDS, or noKey.
func (r *reader) key() (byte, error) {
	if lead := r.lead(); lead <= maxFixInt {
		r.at++
		return lead, nil
	}
	return noKey, r.skip("a key of a map")
}

// uint reads a number of at least 0.
func (r *reader) uint(expected string) (uint64, error) {
	if rest := r.rest(); len(rest) >= 5 && rest[0] == leadUint32 {
		// What most object IDs are.
		r.at += 5
		return uint64(binary.BigEndian.Uint32(rest[1:])), nil
	}
	n, rest, err := msgp.ReadUint64Bytes(r.rest())
	if err != nil {
		return 0, r.wrong(expected, err)
	}
	r.to(rest)
	return n, nil
}

// uints reads past so many numbers of at least 0.
func (r *reader) uints(n uint64, expected string) error {
	for ; n > 0; n-- {
		if r.lead() == leadUint32 && len(r.all)-r.at >= 5 {
			r.at += 5
		} else if _, err := r.uint(expected); err != nil {
			return err
		}
	}
	return nil
}

// uintOrNil reads a number of at least 0, or nil.
func (r *reader) uintOrNil(expected string) (n uint64, ok bool, err error) {
	if r.isNil() {
		return 0, false, nil
	}
	n, err = r.uint(expected)
	return n, err == nil, err
}

// isNil reads nil, if that is what stands next.
func (r *reader) isNil() bool {
	if r.lead() == leadNil {
		r.at++
		return true
	}
	return false
}

// text reads a string, of any of the encodings that strings have had, or nil. It lies in
// the message.
func (r *reader) text(expected string) (text []byte, err error) {
	lead := r.lead()
	if n := int(lead) - minFixText; n >= 0 && lead <= maxFixText && len(r.all)-r.at > n {
		begin := r.at + 1
		r.at = begin + n
		return r.all[begin:r.at:r.at], nil
	}
	if r.isNil() {
		return nil, nil
	}
	var rest []byte
	if lead >= leadBin8 && lead <= leadBin32 {
		text, rest, err = msgp.ReadBytesZC(r.rest())
	} else {
		text, rest, err = msgp.ReadStringZC(r.rest())
	}
	if err != nil {
		return nil, r.wrong(expected, err)
	}
	r.to(rest)
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// str is a text of its own; nil is empty.
func (r *reader) str(expected string) (string, error) {
	text, err := r.text(expected)
	return string(text), err
}

// flag reads a boolean, or a number that is one if it isn't 0; nil is none.
func (r *reader) flag(expected string) (bool, error) {
	if len(r.rest()) > 0 && msgp.NextType(r.rest()) == msgp.BoolType {
		set, rest, err := msgp.ReadBoolBytes(r.rest())
		if err != nil {
			return false, r.wrong(expected, err)
		}
		r.to(rest)
		return set, nil
	}
	n, _, err := r.uintOrNil(expected)
	return n != 0, err
}

// number reads a whole number of 64 bits, if that is what stands next; anything else is
// passed over.
func (r *reader) number() (n int64, ok bool, err error) {
	switch msgp.NextType(r.rest()) {
	case msgp.IntType, msgp.UintType:
		n, rest, err := msgp.ReadInt64Bytes(r.rest())
		if err == nil {
			r.to(rest)
			return n, true, nil
		}
	case msgp.Float64Type, msgp.Float32Type:
		f, rest, err := msgp.ReadFloat64Bytes(r.rest())
		if err == nil && f == math.Trunc(f) && math.Abs(f) < maxExact {
			r.to(rest)
			return int64(f), true, nil
		}
	}
	return 0, false, r.skip("a value")
}

// maxExact is beyond what a float can say exactly.
const maxExact = 1 << 53

// maxMillis is the last time that there is, in the year 2262: 64 bits of nanoseconds.
const maxMillis = math.MaxInt64 / 1e6

// time reads Unix milliseconds, which are sent as a float, or as a whole number.
func (r *reader) time() (millis int64, err error) {
	const expected = "a time in milliseconds"
	var f float64
	var rest []byte
	if r.lead() == leadFloat {
		f, rest, err = msgp.ReadFloat64Bytes(r.rest())
	} else {
		var n uint64
		n, rest, err = msgp.ReadUint64Bytes(r.rest())
		f = float64(n)
	}
	if err != nil {
		return 0, r.wrong(expected, err)
	}
	if !(f >= 0 && f <= maxMillis) {
		return 0, r.fail(FaultValue, expected+" from 1970 to 2262", fmt.Sprint(f))
	}
	r.to(rest)
	return int64(f), nil
}

func (r *reader) skip(expected string) error {
	rest, err := msgp.Skip(r.rest())
	if err != nil {
		return r.wrong(expected, err)
	}
	r.to(rest)
	return nil
}
