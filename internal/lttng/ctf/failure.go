// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"io"
)

// failure returns the error of the machine's last execution of a program.
func (m *machine) failure(p *program) error { return m.failureOf(p.fields[m.faultAt]) }

// failureOf returns the error of reading a field. For a packet that ends too early it wraps io.ErrUnexpectedEOF.
func (m *machine) failureOf(f *Field) error {
	place := fmt.Sprintf("%s, field %q, bit %d", f.Scope, f.Path(), m.pos)
	if f.Path() == "" {
		place = fmt.Sprintf("%s, bit %d", f.Scope, m.pos)
	}
	left := m.end - min(m.pos, m.end)
	switch m.fault {
	case faultString:
		return fmt.Errorf("%s: expected a NUL in the %d bits up to the end, got none: %w", place, left, io.ErrUnexpectedEOF)
	case faultVariable:
		return fmt.Errorf("%s: expected an integer of variable length of at most 64 bits, got none in %d bits: %w", place, left, io.ErrUnexpectedEOF)
	case faultSelector:
		return fmt.Errorf("%s: expected a value that selects an option, got %d", place, m.wanted)
	case faultElements:
		return fmt.Errorf("%s: expected at most %d values in all arrays of an event, at most %d more than it has bits, and at most %d in headers, got more (%d elements here)", place, maxElements, freeElements, maxPacketElements, m.wanted)
	case faultOperations:
		return fmt.Errorf("%s: expected a packet of at most %d fields for each bit, got more", place, maxOperationsPerBit)
	case faultBytes:
		return fmt.Errorf("%s: expected %d bytes, got %d: %w", place, m.wanted, left/8, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%s: expected %d bits, got %d: %w", place, m.wanted, left, io.ErrUnexpectedEOF)
}
