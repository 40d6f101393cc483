// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// scopes are the roots of the scopes of an event, nil for unknown ones.
type scopes [metadata.EventFields + 1]*Field

// resolve finds the sources of f and the fields below it: lengths and selectors.
func (s *scopes) resolve(f *Field) error {
	ref, expected := reference(f)
	if ref != nil {
		source := s.find(f, ref)
		if source == nil {
			return refError(f, ref, "a field of this scope or one before, in front of it", "none")
		}
		if got := mismatch(f, source); got != "" {
			return refError(f, ref, expected, got)
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

// reference returns the reference of a field to another one, and the expected type of that field. It returns nil if
// the field has no reference.
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

// mismatch describes why f cannot refer to source. It returns "" if it can.
func mismatch(f, source *Field) string {
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

// find returns the field that f refers to. It returns nil if there is none, or if it is not always read before f.
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

// search looks for a path in the structures around f, innermost first, and then in the earlier scopes, nearest first
// (CTF 1.8, section 7.3.2).
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

// outer returns the structure around f, or the one that is up structures further out.
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

// descend follows a path of names through structures and variants.
func descend(f *Field, path []string) *Field {
	for _, name := range path {
		if f == nil || f.Kind != Struct && f.Kind != Variant {
			return nil
		}
		f = f.member(name)
	}
	return f
}

// readBefore reports whether source always has a value when f is read, in the frame of f or one around it. So it must
// be in an earlier scope, or before f. Every variant, optional field and array around it must also be around f.
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

// within reports whether f is in the same member of around as inner.
func within(f, around, inner *Field) bool {
	for ; f != nil; f = f.Parent {
		if f.Parent == around {
			return f == inner
		}
	}
	return false
}
