// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Kind is how the value of a field is kept, and which method of Values gives it.
type Kind uint8

// The kinds.
const (
	// Uint is an integer without sign, a boolean or a bit map: Values.Uint.
	Uint Kind = iota
	// Int is an integer with sign: Values.Int.
	Int
	// Float is a floating point number: Values.Float.
	Float
	// Text is a string, or an array or sequence of characters: Values.Text.
	Text
	// Bytes is a blob, or an array or sequence of integers of 8 bits: Values.Bytes.
	Bytes
	// Struct is its members.
	Struct
	// Variant is one of its members: Values.Option says which.
	Variant
	// Optional is its only member, or nothing: Values.Option is nil then.
	Optional
	// Array is elements that are like its only member: Values.Len, Values.Element.
	Array
)

var kindNames = [...]string{"uint", "int", "float", "text", "bytes", "struct", "variant", "optional", "array"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Field is a field of a class: its name and type, and where events keep its value.
type Field struct {
	// Name is the field's name, without the underscore that tracers put in front of
	// names in CTF 1.8; empty for the root of a scope and for elements of arrays.
	Name string
	Kind Kind
	// Type is what the metadata says: base, labels of an enumeration, encoding.
	Type  metadata.Type
	Scope metadata.Scope
	// Parent is nil for the root of a scope.
	Parent *Field
	// Members are the members of a structure, the options of a variant, or the one
	// field that an array's elements and an optional field are like.
	Members []*Field

	// written is the name as the metadata has it.
	written string
	// index finds members by their written names where there are many.
	index map[string]int
	roles metadata.Role
	// order is the field's place among all of its scope.
	order uint32
	// frame is 1 outside of arrays, 2 in the elements of an array, and so on.
	frame uint8
	// slot is where in its frame the value stands; structures have none.
	slot uint32
	// stride is how many slots an element of an array has.
	stride uint32
	// minBits is the least size of the field.
	minBits uint64
	// source is the field that holds the length or selects an option.
	source *Field
	// labels says which label a value has; nil if this is no enumeration.
	labels *selector
}

// manyMembers is from how many members on a structure has an index.
const manyMembers = 16

// member returns the member that is written so; nil if there is none.
func (f *Field) member(written string) *Field {
	if f.index != nil {
		if i, ok := f.index[written]; ok {
			return f.Members[i]
		}
		return nil
	}
	for _, m := range f.Members {
		if m.written == written {
			return m
		}
	}
	return nil
}

// Lookup returns the field at a path below f, names with dots between them, written
// as in the metadata or without the leading underscore; nil if there is none. Options
// of variants are steps of the path; elements of arrays can't be reached.
func (f *Field) Lookup(path string) *Field {
	for f != nil && path != "" {
		if f.Kind == Optional {
			f = f.Members[0]
		}
		var name string
		name, path, _ = strings.Cut(path, ".")
		f = f.named(name)
	}
	return f
}

// named returns the member of that name, in either writing.
func (f *Field) named(name string) *Field {
	if f.Kind != Struct && f.Kind != Variant {
		return nil
	}
	if m := f.member(name); m != nil {
		return m
	}
	for _, m := range f.Members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Path is the way to the field from the root of its scope, for messages.
func (f *Field) Path() string {
	var names []string
	for ; f != nil && f.Parent != nil; f = f.Parent {
		if f.Parent.Kind == Array {
			names = append(names, "[]")
		} else if f.written != "" {
			names = append(names, f.written)
		}
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		if b.Len() > 0 && names[i] != "[]" {
			b.WriteByte('.')
		}
		b.WriteString(names[i])
	}
	return b.String()
}

// Encoding is how the bytes of a Text are characters.
func (f *Field) Encoding() metadata.Encoding {
	switch t := f.Type.(type) {
	case *metadata.String:
		return t.Encoding
	case *metadata.Bytes:
		return t.Encoding
	case *metadata.Array:
		if element, ok := t.Element.(*metadata.Integer); ok {
			return element.Encoding
		}
	}
	return metadata.NoEncoding
}
