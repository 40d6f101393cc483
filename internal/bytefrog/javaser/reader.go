// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import (
	"encoding/binary"
	"fmt"

	"github.com/callbraid/callbraid/internal/mutf8"
)

// reader reads b from offset at. handles has the elements that the stream may refer to, by number: a classDesc, a
// string, an ArrayList, or nil for all others.
type reader struct {
	b       []byte
	at      int
	handles []any
}

// next returns the next n bytes.
func (r *reader) next(n int, what string) ([]byte, error) {
	if n > len(r.b)-r.at {
		return nil, r.fail(r.at, fmt.Sprintf("%s (%d bytes)", what, n), fmt.Sprintf("the end of the stream after %d", len(r.b)-r.at))
	}
	b := r.b[r.at : r.at+n]
	r.at += n
	return b, nil
}

func (r *reader) u8(what string) (uint8, error) {
	b, err := r.next(1, what)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func (r *reader) u16(what string) (uint16, error) {
	b, err := r.next(2, what)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint16(b), nil
}

func (r *reader) u32(what string) (uint32, error) {
	b, err := r.next(4, what)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b), nil
}

func (r *reader) u64(what string) (uint64, error) {
	b, err := r.next(8, what)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b), nil
}

// shortString reads a 16-bit length and the following string.
func (r *reader) shortString(what string) (string, error) {
	n, err := r.u16("the length of " + what)
	if err != nil {
		return "", err
	}
	return r.text(int(n), what)
}

// name reads a nonempty string.
func (r *reader) name(what string) (string, error) {
	start := r.at
	s, err := r.shortString(what)
	if err == nil && s == "" {
		return "", r.fail(start, what, "an empty one")
	}
	return s, err
}

func (r *reader) text(n int, what string) (string, error) {
	start := r.at
	b, err := r.next(n, what)
	if err != nil {
		return "", err
	}
	s, err := mutf8.DecodeStrict(b)
	if err != nil {
		return "", r.fail(start, what+" in modified UTF-8", err.Error())
	}
	return s, nil
}

func (r *reader) expectU8(want uint8, what string) error {
	start := r.at
	got, err := r.u8(what)
	if err != nil {
		return err
	}
	if got != want {
		return r.fail(start, fmt.Sprintf("%s (0x%02X)", what, want), fmt.Sprintf("0x%02X", got))
	}
	return nil
}

func (r *reader) expectU16(want uint16, what string) error {
	start := r.at
	got, err := r.u16(what)
	if err != nil {
		return err
	}
	if got != want {
		return r.fail(start, fmt.Sprintf("%s 0x%04X", what, want), fmt.Sprintf("0x%04X", got))
	}
	return nil
}

func (r *reader) fail(offset int, expected, got string) error {
	return &Error{Offset: offset, Expected: expected, Got: got}
}

func typeCode(code byte) string { return fmt.Sprintf("type code 0x%02X", code) }

func describe(v Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case String:
		return fmt.Sprintf("the string %q", v)
	default:
		return "a list"
	}
}
