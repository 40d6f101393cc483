// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// scopes are the roots of the scopes that an event has; nil where one isn't known.
type scopes [metadata.EventFields + 1]*Field

// resolve finds the fields that those below f refer to: lengths and selectors.
func (s *scopes) resolve(f *Field) error {
	ref, what := reference(f)
	if ref != nil {
		source := s.find(f, ref)
		if source == nil {
			return refError(f, ref, "a field of this scope or one before, in front of it", "none")
		}
		if got := unfit(f, source); got != "" {
			return refError(f, ref, what, got)
		}
		f.source = source
	}
	for _, m := range f.Members {
		if err := s.resolve(m); err != nil {
			return err
		}
	}
	return nil
}

func refError(f *Field, ref *metadata.Ref, expected, got string) error {
	return &metadata.Error{
		Where:    ref.Where,
		Path:     fmt.Sprintf("%s, field %q, reference %q", f.Scope, f.Path(), strings.Join(ref.Path, ".")),
		Expected: expected, Got: got,
	}
}

// reference returns the reference of a field to another one, if it has one, and what
// that has to be.
func reference(f *Field) (*metadata.Ref, string) {
	switch typ := f.Type.(type) {
	case *metadata.Array:
		return typ.LengthRef, "an integer without sign"
	case *metadata.Bytes:
		return typ.LengthRef, "an integer without sign"
	case *metadata.Variant:
		if typ.ByLabel {
			return &typ.Selector, "an enumeration"
		}
		return &typ.Selector, "an integer"
	case *metadata.Optional:
		if len(typ.Ranges) == 0 {
			return &typ.Selector, "a boolean"
		}
		return &typ.Selector, "an integer"
	}
	return nil, ""
}

// unfit says why source can't be what f refers to; "" if it can.
func unfit(f, source *Field) string {
	integer, ok := source.Type.(*metadata.Integer)
	if !ok {
		return "a field of kind " + source.Kind.String()
	}
	switch typ := f.Type.(type) {
	case *metadata.Array, *metadata.Bytes:
		if integer.Signed {
			return "one with sign"
		}
	case *metadata.Variant:
		if typ.ByLabel && !integer.Enum {
			return "an integer without labels"
		}
	case *metadata.Optional:
		if len(typ.Ranges) == 0 && !integer.Boolean {
			return "an integer that is none"
		}
	}
	return ""
}

// find returns the field that f refers to; nil if there is none that has been read
// whenever f is.
func (s *scopes) find(f *Field, ref *metadata.Ref) *Field {
	var found *Field
	switch {
	case ref.Origin != metadata.NoScope:
		found = descend(s[ref.Origin], ref.Path)
	case ref.Search:
		return s.search(f, ref.Path)
	default:
		found = descend(outer(f, ref.Up), ref.Path)
	}
	if found == nil || !readBefore(found, f) {
		return nil
	}
	return found
}

// search looks for a path in the structures around f from inside out, then in the
// scopes before, the nearest first (CTF 1.8, section 7.3.2).
func (s *scopes) search(f *Field, path []string) *Field {
	for around := f.Parent; around != nil; around = around.Parent {
		if around.Kind != Struct {
			continue
		}
		if found := descend(around, path); found != nil && readBefore(found, f) {
			return found
		}
	}
	for scope := f.Scope; scope > metadata.PacketHeader; {
		scope--
		if found := descend(s[scope], path); found != nil && readBefore(found, f) {
			return found
		}
	}
	return nil
}

// outer returns the structure around f, or the one that is up structures outside.
func outer(f *Field, up int) *Field {
	for f = f.Parent; f != nil; f = f.Parent {
		if f.Kind != Struct {
			continue
		}
		if up == 0 {
			return f
		}
		up--
	}
	return nil
}

// descend follows names through structures.
func descend(f *Field, path []string) *Field {
	for _, name := range path {
		if f == nil || f.Kind != Struct && f.Kind != Variant {
			return nil
		}
		f = f.member(name)
	}
	return f
}

// readBefore says whether source has a value whenever f is read, in the frame of f or
// one around it: it is in a scope before, or in front of f, and every variant,
// optional field and array around it is around f, too.
func readBefore(source, f *Field) bool {
	if source.Scope > f.Scope || source.Scope == f.Scope && source.order >= f.order {
		return false
	}
	for inner, around := source, source.Parent; around != nil; inner, around = around, around.Parent {
		if around.Kind != Struct && !within(f, around, inner) {
			return false
		}
	}
	return true
}

// within says whether f is in the same member of around as inner.
func within(f, around, inner *Field) bool {
	for ; f != nil; f = f.Parent {
		if f.Parent == around {
			return f == inner
		}
	}
	return false
}
