// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"strconv"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// number is a field of an event that is an integer, or none.
type number struct {
	field *ctf.Field
	// guarded says that the field is there only if a variant has selected it.
	guarded bool
}

// text is a field of an event that is text, or none.
type text struct {
	field   *ctf.Field
	guarded bool
}

// numberAt is the integer of that path among the fields of a scope.
func numberAt(class *ctf.EventClass, scope metadata.Scope, path string) number {
	f := class.Field(scope, path)
	if f == nil || f.Kind != ctf.Int && f.Kind != ctf.Uint {
		return number{}
	}
	return number{field: f, guarded: isGuarded(f)}
}

// textAt is the text of that path among the fields of a scope.
func textAt(class *ctf.EventClass, scope metadata.Scope, path string) text {
	f := class.Field(scope, path)
	if f == nil || f.Kind != ctf.Text {
		return text{}
	}
	return text{field: f, guarded: isGuarded(f)}
}

// isGuarded reports whether there is a variant or an optional field around f.
func isGuarded(f *ctf.Field) bool {
	for around := f.Parent; around != nil; around = around.Parent {
		if around.Kind == ctf.Variant || around.Kind == ctf.Optional {
			return true
		}
	}
	return false
}

// there reports whether events of the class can have the value.
func (n number) there() bool { return n.field != nil }
func (t text) there() bool   { return t.field != nil }

// get is the value in an event, and whether it has one. An unsigned one beyond 2^63
// keeps its bits.
func (n number) get(v *ctf.Values) (int64, bool) {
	if n.field == nil || n.guarded && !v.Present(n.field) {
		return 0, false
	}
	return v.Int(n.field), true
}

// get is the text in an event; nil: it has none. The bytes hold until the next event.
func (t text) get(v *ctf.Values) []byte {
	if t.field == nil || t.guarded && !v.Present(t.field) {
		return nil
	}
	return v.Text(t.field)
}

// appendScalar appends an integer or a text as text, for keys and names.
func appendScalar(dst []byte, v *ctf.Values, f *ctf.Field) []byte {
	switch f.Kind {
	case ctf.Int:
		return strconv.AppendInt(dst, v.Int(f), 10)
	case ctf.Uint:
		return strconv.AppendUint(dst, v.Uint(f), 10)
	case ctf.Text:
		return v.AppendText(dst, f)
	default:
		return dst
	}
}
