// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Kind determines how the value of a field is stored, and which method of Values returns it.
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
	// Struct has only the values of its members.
	Struct
	// Variant has the value of one of its members: Values.Option returns which.
	Variant
	// Optional has the value of its only member, or none: then Values.Option returns nil.
	Optional
	// Array has elements of the type of its only member: Values.Len, Values.Element.
	Array
)

var kindNames = [...]string{"uint", "int", "float", "text", "bytes", "struct", "variant", "optional", "array"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Field is a field of a class: its name and type, and the slot for its value.
type Field struct {
	// Name is the field's name, without the underscore that tracers put in front of names in CTF 1.8. It is empty for
	// the root of a scope and for elements of arrays.
	Name string
	Kind Kind
	// Type is the declaration in the metadata: base, labels of an enumeration, encoding.
	Type  metadata.Type
	Scope metadata.Scope
	// Parent is nil for the root of a scope.
	Parent *Field
	// Members are the members of a structure, the options of a variant, or the one field of an array or an optional
	// field.
	Members []*Field

	// written is the name in the metadata.
	written string
	// index maps the written names of members to their indexes. It is nil if there are few members.
	index map[string]int
	roles metadata.Role
	// order is the field's position among all fields of its scope.
	order uint32
	// frame is 1 outside arrays, 2 in the elements of an array, and so on.
	frame uint8
	// slot is the slot of the value in its frame. Structures have none.
	slot uint32
	// stride is the number of slots of an array's element.
	stride uint32
	// minBits is the minimum size of the field.
	minBits uint64
	// source is the field that holds the length or selects an option.
	source *Field
	// labels maps values to labels. It is nil if the field is no enumeration.
	labels *selector
}

// manyMembers is the number of members from which a structure has an index.
const manyMembers = 16

// member returns the member with this written name, or nil.
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

// Lookup returns the field at a path below f, or nil. A path is names separated by dots, written as in the metadata
// or without the leading underscore. Options of variants are steps of the path. A path cannot enter arrays.
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

// named returns the member with this name, in either form, or nil.
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

// Path returns the path of the field from the root of its scope, for messages.
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

// HasRole reports whether the field has a meaning for the reader, such as the size of a packet.
func (f *Field) HasRole() bool { return f.roles != 0 }

// Source returns the field that holds the length of f or selects an option of it, or nil.
func (f *Field) Source() *Field { return f.source }

// Encoding returns the encoding of a field of kind Text.
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
