// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package metadata

// Type is the type of a field (CTF 2: field class): *Integer, *Float, *String, *Bytes, *Struct, *Array, *Variant or
// *Optional.
type Type interface {
	// Alignment in bits, relative to the begin of the packet. It is a power of two.
	Alignment() uint64
}

// Encoding is the encoding of text in bytes.
type Encoding uint8

// The encodings. CTF 1.8 has ASCII and UTF-8.
const (
	NoEncoding Encoding = iota
	ASCII
	UTF8
	UTF16BE
	UTF16LE
	UTF32BE
	UTF32LE
)

// Unit returns the size of a code unit in bytes: 1, 2 or 4.
func (e Encoding) Unit() uint64 {
	switch e {
	case UTF16BE, UTF16LE:
		return 2
	case UTF32BE, UTF32LE:
		return 4
	}
	return 1
}

// Role is the meaning of a field for a reader. CTF 2 declares roles. In CTF 1.8 the names of fields determine them.
type Role uint16

// The roles. A field may have several.
const (
	RoleMagic Role = 1 << iota
	RoleUUID
	RoleStreamClass
	RoleStreamInstance
	// RoleClock is the default clock's value at the begin of a packet, or of an event.
	RoleClock
	RolePacketEnd
	RoleContentSize
	RolePacketSize
	RoleSequence
	RoleDiscarded
	RoleEventClass
)

// Integer is an integer, an enumeration, a boolean or a bit map.
type Integer struct {
	// Size in bits, 1 to 64. It has no meaning if Variable is set.
	Size   uint64
	Align  uint64
	Signed bool
	Order  ByteOrder
	// Variable is set for LEB128: seven bits in each byte, the least significant first.
	Variable bool
	// Base is the preferred base for printing the value: 2, 8, 10 or 16.
	Base uint8
	// Encoding is set if the integer is a character.
	Encoding Encoding
	// Clock is the name of the clock of the value, empty for none.
	Clock string
	Roles Role
	// Enum is set if values have names, which are in Mappings.
	Enum     bool
	Mappings []Mapping
	// Boolean is set for a boolean: all values except 0 are true.
	Boolean bool
	// Flags are the names of bits, by index. Index 0 is the least significant bit.
	Flags []Mapping
}

// Mapping is a name and its values.
type Mapping struct {
	Label  string
	Ranges []Range
}

// Range contains the numbers from Low to High, both included.
type Range struct {
	Low, High Number
}

// Label returns the first label of a value of 64 bits, which has a sign if the integer has one. It returns "" if
// there is none.
func (t *Integer) Label(value uint64) string {
	n := Unsigned(value)
	if t.Signed {
		n = Signed(int64(value))
	}
	for _, m := range t.Mappings {
		for _, r := range m.Ranges {
			if r.Low.Compare(n) <= 0 && n.Compare(r.High) <= 0 {
				return m.Label
			}
		}
	}
	return ""
}

// Float is a floating point number of IEEE 754.
type Float struct {
	// Size in bits: 32 or 64.
	Size  uint64
	Align uint64
	Order ByteOrder
}

// String is text that ends with a NUL.
type String struct {
	Encoding Encoding
}

// Bytes is a number of bytes: text, which may end early with a NUL, or a blob if Encoding is NoEncoding.
type Bytes struct {
	// Length in bytes if LengthRef is nil.
	Length    uint64
	LengthRef *Ref
	Encoding  Encoding
	MediaType string
	Roles     Role
}

// Struct is a sequence of fields.
type Struct struct {
	Members []Member
	align   uint64
}

// Member is a field of a Struct.
type Member struct {
	// Name as written in the metadata.
	Name string
	Type Type
}

// NewStruct returns a structure. Its alignment is the largest of align and those of its members.
func NewStruct(members []Member, align uint64) *Struct {
	s := &Struct{Members: members, align: max(align, 1)}
	for _, m := range members {
		s.align = max(s.align, m.Type.Alignment())
	}
	return s
}

// Array is a sequence of elements of one type.
type Array struct {
	Element Type
	// Length in elements if LengthRef is nil.
	Length    uint64
	LengthRef *Ref
	// MinAlign is the minimum alignment of the first element in bits, 0 for none.
	MinAlign uint64
}

// Variant is one of several types. Another field selects it.
type Variant struct {
	Selector Ref
	Options  []Option
	// ByLabel is set if the selector is an enumeration whose labels are the names of options (CTF 1.8). Otherwise the
	// options have ranges (CTF 2).
	ByLabel bool
}

// Option is one of the types of a Variant.
type Option struct {
	Name   string
	Type   Type
	Ranges []Range
}

// Optional is a field that exists or not, depending on another field.
type Optional struct {
	Selector Ref
	// Ranges are the selector's values for which the field exists. They are empty if the selector is a boolean.
	Ranges []Range
	Type   Type
}

// Ref is the location of another field, relative to the field that refers to it.
type Ref struct {
	// Origin is the scope in which Path begins, or NoScope.
	Origin Scope
	// Search is used if there is no Origin. If it is set, the first name of Path is searched in the structures around
	// the field, innermost first, and then in the earlier scopes (CTF 1.8). Otherwise Path begins Up structures
	// outside the one around the field (CTF 2).
	Search bool
	Up     int
	Path   []string
	// Where is the position in the metadata, for errors.
	Where Position
}

// Alignment in bits.
func (t *Integer) Alignment() uint64 {
	if t.Variable {
		return 8
	}
	return t.Align
}

// Alignment in bits.
func (t *Float) Alignment() uint64 { return t.Align }

// Alignment in bits.
func (t *String) Alignment() uint64 { return 8 }

// Alignment in bits.
func (t *Bytes) Alignment() uint64 { return 8 }

// Alignment in bits.
func (t *Struct) Alignment() uint64 { return t.align }

// Dimensions returns the number of arrays of which t consists, one directly inside the other, up to most. Parsers
// bound it, because names of arrays allow a short text to nest them deeply, and Alignment visits all of them.
func Dimensions(t Type, most int) int {
	n := 0
	for a, ok := t.(*Array); ok && n < most; a, ok = a.Element.(*Array) {
		n++
	}
	return n
}

// Alignment in bits.
func (t *Array) Alignment() uint64 { return max(t.MinAlign, t.Element.Alignment()) }

// Alignment returns 1. The alignment of the selected type applies to its own place.
func (t *Variant) Alignment() uint64 { return 1 }

// Alignment returns 1. The alignment of the field applies to its own place.
func (t *Optional) Alignment() uint64 { return 1 }
