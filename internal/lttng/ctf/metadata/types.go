// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package metadata

// Type is the type of a field (CTF 2: field class): *Integer, *Float, *String,
// *Bytes, *Struct, *Array, *Variant or *Optional.
type Type interface {
	// Alignment in bits, relative to the begin of the packet; a power of two.
	Alignment() uint64
}

// Encoding is how bytes are text.
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

// Unit is the size of a code unit in bytes: 1, 2 or 4.
func (e Encoding) Unit() uint64 {
	switch e {
	case UTF16BE, UTF16LE:
		return 2
	case UTF32BE, UTF32LE:
		return 4
	}
	return 1
}

// Role is what a field means to a reader, as CTF 2 says it. In CTF 1.8 the names
// of fields say it.
type Role uint16

// The roles; a field may have several.
const (
	RoleMagic Role = 1 << iota
	RoleUUID
	RoleStreamClass
	RoleStreamInstance
	// RoleClock is the default clock's value: at the begin of a packet, or of an
	// event.
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
	// Size in bits, 1 to 64. Without meaning where Variable.
	Size   uint64
	Align  uint64
	Signed bool
	Order  ByteOrder
	// Variable is LEB128: seven bits in each byte, the least significant first.
	Variable bool
	// Base is what the value is best printed in: 2, 8, 10 or 16.
	Base uint8
	// Encoding says that the integer is a character.
	Encoding Encoding
	// Clock is the name of the clock whose value this is; empty for none.
	Clock string
	Roles Role
	// Enum says that the value has names; Mappings are these.
	Enum     bool
	Mappings []Mapping
	// Boolean: everything but 0 is true.
	Boolean bool
	// Flags are the names of bits, by index; 0 is the least significant.
	Flags []Mapping
}

// Mapping is a name and the values it stands for.
type Mapping struct {
	Label  string
	Ranges []Range
}

// Range is the numbers from Low to High, both included.
type Range struct {
	Low, High Number
}

// Label returns the first label of a value of 64 bits, which has a sign if the integer
// has one; "" if there is none.
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

// Float is a number of IEEE 754.
type Float struct {
	// Size in bits: 32 or 64.
	Size  uint64
	Align uint64
	Order ByteOrder
}

// String is text that a NUL ends.
type String struct {
	Encoding Encoding
}

// Bytes is a number of bytes: text that a NUL may end early, or a blob where
// Encoding is NoEncoding.
type Bytes struct {
	// Length in bytes where LengthRef is nil.
	Length    uint64
	LengthRef *Ref
	Encoding  Encoding
	MediaType string
	Roles     Role
}

// Struct is fields that follow one another.
type Struct struct {
	Members []Member
	align   uint64
}

// Member is a field of a Struct.
type Member struct {
	// Name as it is written in the metadata.
	Name string
	Type Type
}

// NewStruct makes a structure whose alignment is the largest of align and those of
// its members.
func NewStruct(members []Member, align uint64) *Struct {
	s := &Struct{Members: members, align: max(align, 1)}
	for _, m := range members {
		s.align = max(s.align, m.Type.Alignment())
	}
	return s
}

// Array is elements of one type.
type Array struct {
	Element Type
	// Length in elements where LengthRef is nil.
	Length    uint64
	LengthRef *Ref
	// MinAlign is the least alignment of the first element in bits; 0 for none.
	MinAlign uint64
}

// Variant is one of several types, which another field selects.
type Variant struct {
	Selector Ref
	Options  []Option
	// ByLabel says that the selector is an enumeration whose labels are the names
	// of options (CTF 1.8). Otherwise the options have ranges (CTF 2).
	ByLabel bool
}

// Option is one of the types of a Variant.
type Option struct {
	Name   string
	Type   Type
	Ranges []Range
}

// Optional is a field that another field says to be there or not.
type Optional struct {
	Selector Ref
	// Ranges are the selector's values for which the field is there; empty where
	// the selector is a boolean.
	Ranges []Range
	Type   Type
}

// Ref is where another field stands, from the view of the one that needs it.
type Ref struct {
	// Origin is the scope that Path begins in, or NoScope.
	Origin Scope
	// Search, without Origin, looks for the first name of Path in the structures
	// around the field from inside out, then in the scopes before (CTF 1.8).
	// Otherwise Path begins Up structures outside of the one around the field
	// (CTF 2).
	Search bool
	Up     int
	Path   []string
	// Where is the place in the metadata, for errors.
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

// Dimensions is how many arrays t is, one directly inside of the other, counted up to
// most. Who makes types bounds them: names for arrays let a short text nest them as deep
// as it is long, and asking for the alignment goes all the way.
func Dimensions(t Type, most int) int {
	n := 0
	for a, ok := t.(*Array); ok && n < most; a, ok = a.Element.(*Array) {
		n++
	}
	return n
}

// Alignment in bits.
func (t *Array) Alignment() uint64 { return max(t.MinAlign, t.Element.Alignment()) }

// Alignment is 1: that of what is selected holds where it stands.
func (t *Variant) Alignment() uint64 { return 1 }

// Alignment is 1: that of the field holds where it stands.
func (t *Optional) Alignment() uint64 { return 1 }
