// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"bytes"
	"math"
)

// Values are the values of the fields of a packet's header and context, of an event, or of one element of an array.
// The methods accept only fields of that class, scope or array: for others they return anything, or panic. Fields
// inside a variant or an optional field have a value only if Present returns true.
type Values struct {
	data, side []byte
	slots      []uint64
	base       int
}

// Uint returns the value of a field of kind Uint.
func (v *Values) Uint(f *Field) uint64 { return v.slots[v.base+int(f.slot)] }

// Int returns the value of a field of kind Int.
func (v *Values) Int(f *Field) int64 { return int64(v.slots[v.base+int(f.slot)]) }

// Float returns the value of a field of kind Float.
func (v *Values) Float(f *Field) float64 {
	return math.Float64frombits(v.slots[v.base+int(f.slot)])
}

// Bytes returns the bytes of a field of kind Text or Bytes: all bytes of an array or sequence, and of a string those
// before its NUL. They belong to the packet or the Reader and are valid until the next event.
func (v *Values) Bytes(f *Field) []byte {
	at := v.slots[v.base+int(f.slot)]
	from, n := at>>32, at&math.MaxUint32
	if from < uint64(len(v.data)) || n == 0 {
		return v.data[min(from, uint64(len(v.data))):][:n]
	}
	return v.side[from-uint64(len(v.data)):][:n]
}

// Text returns the text of a field of kind Text, which ends before the first NUL of an array or sequence. The bytes
// are in the field's Encoding. AppendText converts them to UTF-8. They are valid until the next event.
func (v *Values) Text(f *Field) []byte {
	b := v.Bytes(f)
	if unit := int(f.Encoding().Unit()); unit > 1 {
		n, ok := terminated(b, uint8(unit))
		if ok {
			return b[:n]
		}
		return b[:len(b)/unit*unit]
	}
	if n := bytes.IndexByte(b, 0); n >= 0 {
		return b[:n]
	}
	return b
}

// Option returns the selected member of a variant or optional field, or nil.
func (v *Values) Option(f *Field) *Field {
	if i := v.slots[v.base+int(f.slot)]; i < uint64(len(f.Members)) {
		return f.Members[i]
	}
	return nil
}

// Present reports whether all variants and optional fields around f, up to an array, have selected it.
func (v *Values) Present(f *Field) bool {
	for around := f.Parent; around != nil && around.Kind != Array; f, around = around, around.Parent {
		if around.Kind != Struct && v.Option(around) != f {
			return false
		}
	}
	return true
}

// Len returns the number of elements of a field of kind Array.
func (v *Values) Len(f *Field) int {
	return int(v.slots[v.base+int(f.slot)] & math.MaxUint32)
}

// Element returns the values of an element of a field of kind Array. Its fields are f.Members[0] and those below.
func (v *Values) Element(f *Field, i int) Values {
	first := int(v.slots[v.base+int(f.slot)] >> 32)
	return Values{data: v.data, side: v.side, slots: v.slots, base: first + i*int(f.stride)}
}
