// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// treeBuilder makes the fields of one scope from its type, and assigns slots to them.
//
// Only one option of a variant exists at a time, so options share slots. The elements of an array have a frame of
// their own, whose slots begin at 0.
type treeBuilder struct {
	trace *Trace
	scope metadata.Scope
	// next is the next free slot of the current frame.
	next  uint32
	frame uint8
	order uint32
}

// build returns the root of a scope whose slots begin at from, and the first slot after them. Without a type the root
// is a structure without members.
func (t *Trace) build(scope metadata.Scope, s *metadata.Struct, from uint32) (*Field, uint32, error) {
	if s == nil {
		s = metadata.NewStruct(nil, 1)
	}
	b := treeBuilder{trace: t, scope: scope, next: from, frame: 1}
	root, err := b.field(nil, "", s, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", scope, err)
	}
	return root, b.next, nil
}

// countWork counts n fields, operations or values of selectors against the bound of the trace.
func (t *Trace) countWork(n int) error {
	t.worked += n
	if t.worked > maxTraceWork {
		return fmt.Errorf("expected classes with at most %d fields and operations in all, got more", maxTraceWork)
	}
	return nil
}

// slot returns the next slot of the frame.
func (b *treeBuilder) slot() uint32 {
	b.next++
	return b.next - 1
}

// field makes a field and the fields below it.
func (b *treeBuilder) field(parent *Field, written string, typ metadata.Type, depth int) (*Field, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("expected at most %d levels of nesting, got more", maxNesting)
	}
	if b.order++; b.order > maxClassFields {
		return nil, fmt.Errorf("expected at most %d fields, got more", maxClassFields)
	}
	if err := b.trace.countWork(1); err != nil {
		return nil, err
	}
	f := &Field{
		Name: b.trace.displayName(written), written: written, Type: typ,
		Scope: b.scope, Parent: parent, order: b.order, frame: b.frame,
	}
	f.roles = b.trace.rolesOf(f)
	var err error
	switch typ := typ.(type) {
	case *metadata.Integer:
		f.slot, f.minBits = b.slot(), typ.Size
		if typ.Variable {
			f.minBits = 8
		}
		if typ.Signed {
			f.Kind = Int
		}
		if typ.Enum {
			f.labels, err = b.trace.labelTable(typ)
		}
	case *metadata.Float:
		f.Kind, f.slot, f.minBits = Float, b.slot(), typ.Size
	case *metadata.String:
		f.Kind, f.slot, f.minBits = Text, b.slot(), 8*typ.Encoding.Unit()
	case *metadata.Bytes:
		err = b.bytes(f, typ.Length, typ.LengthRef, typ.Encoding)
	case *metadata.Struct:
		err = b.structure(f, typ, depth)
	case *metadata.Array:
		err = b.array(f, typ, depth)
	case *metadata.Variant:
		err = b.variant(f, typ, depth)
	case *metadata.Optional:
		f.Kind, f.slot = Optional, b.slot()
		err = b.only(f, typ.Type, depth)
	default:
		err = fmt.Errorf("field %q: expected a type, got %T", written, typ)
	}
	return f, err
}

// bytes lays out bytes of a fixed length, or with a length that another field holds.
func (b *treeBuilder) bytes(f *Field, length uint64, ref *metadata.Ref, encoding metadata.Encoding) error {
	f.Kind, f.slot = Bytes, b.slot()
	if encoding != metadata.NoEncoding {
		f.Kind = Text
	}
	if ref != nil {
		return nil
	}
	if length > MaxPacketBytes {
		return fmt.Errorf("field %q: expected a length of at most %d bytes, got %d", f.written, MaxPacketBytes, length)
	}
	f.minBits = 8 * length
	return nil
}

func (b *treeBuilder) structure(f *Field, typ *metadata.Struct, depth int) error {
	f.Kind = Struct
	for _, member := range typ.Members {
		m, err := b.field(f, member.Name, member.Type, depth+1)
		if err != nil {
			return err
		}
		f.Members = append(f.Members, m)
		f.minBits = min(f.minBits+m.minBits, maxMinBits)
	}
	f.index = b.indexed(f)
	return nil
}

// indexed returns the index of members by their written names, or nil if there are few.
func (b *treeBuilder) indexed(f *Field) map[string]int {
	if len(f.Members) < manyMembers {
		return nil
	}
	index := make(map[string]int, len(f.Members))
	for i, m := range f.Members {
		if _, ok := index[m.written]; !ok {
			index[m.written] = i
		}
	}
	return index
}

// array lays out an array. Byte-sized integers without padding are laid out as bytes, other elements with a frame of
// their own.
func (b *treeBuilder) array(f *Field, typ *metadata.Array, depth int) error {
	if element, ok := typ.Element.(*metadata.Integer); ok && isByte(element) && typ.MinAlign <= element.Align {
		return b.bytes(f, typ.Length, typ.LengthRef, element.Encoding)
	}
	f.Kind, f.slot = Array, b.slot()
	outer := b.next
	b.next, b.frame = 0, b.frame+1
	err := b.only(f, typ.Element, depth)
	f.stride = b.next
	b.next, b.frame = outer, b.frame-1
	if err != nil || typ.LengthRef != nil {
		f.minBits = 0
		return err
	}
	if typ.Length > maxMinBits {
		return fmt.Errorf("field %q: expected a length of at most %d, got %d", f.written, uint64(maxMinBits), typ.Length)
	}
	if f.minBits > 0 {
		f.minBits = min(typ.Length, maxMinBits/f.minBits) * f.minBits
	}
	return nil
}

// isByte reports whether an array of elements of this type is stored as bytes.
func isByte(t *metadata.Integer) bool {
	return t.Size == 8 && t.Align <= 8 && !t.Variable && !t.Enum && !t.Boolean && len(t.Flags) == 0
}

// only makes the one member of an array or optional field. For an array it sets f.minBits to that of an element.
func (b *treeBuilder) only(f *Field, typ metadata.Type, depth int) error {
	m, err := b.field(f, "", typ, depth+1)
	if err != nil {
		return err
	}
	f.Members = []*Field{m}
	if f.Kind == Array {
		f.minBits = m.minBits
	}
	return nil
}

func (b *treeBuilder) variant(f *Field, typ *metadata.Variant, depth int) error {
	f.Kind, f.slot = Variant, b.slot()
	first, last := b.next, b.next
	f.minBits = maxMinBits
	for _, option := range typ.Options {
		b.next = first
		m, err := b.field(f, option.Name, option.Type, depth+1)
		if err != nil {
			return err
		}
		f.Members = append(f.Members, m)
		f.minBits = min(f.minBits, m.minBits)
		last = max(last, b.next)
	}
	b.next = last
	f.index = b.indexed(f)
	return nil
}

// displayName returns a field's name without the underscore. CTF 1.8 requires tracers to put one in front of names
// that could be keywords.
func (t *Trace) displayName(written string) string {
	if t.meta.Major == 1 {
		return strings.TrimPrefix(written, "_")
	}
	return written
}

// names18 are the fields whose names have a role in CTF 1.8.
var names18 = map[metadata.Scope]map[string]metadata.Role{
	metadata.PacketHeader: {
		"magic": metadata.RoleMagic, "uuid": metadata.RoleUUID,
		"stream_id": metadata.RoleStreamClass, "stream_instance_id": metadata.RoleStreamInstance,
	},
	metadata.PacketContext: {
		"timestamp_begin": metadata.RoleClock, "timestamp_end": metadata.RolePacketEnd,
		"content_size": metadata.RoleContentSize, "packet_size": metadata.RolePacketSize,
		"packet_seq_num": metadata.RoleSequence, "events_discarded": metadata.RoleDiscarded,
	},
	metadata.EventHeader: {"id": metadata.RoleEventClass, "timestamp": metadata.RoleClock},
}

// rolesOf returns the roles of a field for the reader.
func (t *Trace) rolesOf(f *Field) metadata.Role {
	switch typ := f.Type.(type) {
	case *metadata.Integer:
		if t.meta.Major != 1 {
			return typ.Roles
		}
		roles := names18[f.Scope][f.written]
		if f.Scope == metadata.EventHeader && typ.Clock != "" {
			roles |= metadata.RoleClock
		}
		if f.Scope != metadata.EventHeader && !topLevel(f) {
			return 0
		}
		return roles &^ metadata.RoleUUID
	case *metadata.Bytes:
		return typ.Roles & metadata.RoleUUID
	case *metadata.Array:
		if t.meta.Major == 1 && topLevel(f) {
			return names18[f.Scope][f.written] & metadata.RoleUUID
		}
	}
	return 0
}

// topLevel reports whether the field is a member of its scope's structure.
func topLevel(f *Field) bool { return f.Parent != nil && f.Parent.Parent == nil }
