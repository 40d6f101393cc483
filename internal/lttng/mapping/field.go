// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"strconv"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/mutf8"
)

// Number is an integer field of an event class. The zero value is a field that no event has.
type Number struct {
	field *ctf.Field
	// guarded fields exist only in events whose variant or optional field selects them.
	guarded bool
}

// Text is a text field of an event class. The zero value is a field that no event has.
type Text struct {
	field   *ctf.Field
	guarded bool
	// modified is set for text in Java's modified UTF-8.
	modified bool
}

// numberAt returns the integer field at a path in a scope.
func numberAt(class *ctf.EventClass, scope metadata.Scope, path string) Number {
	f := class.Field(scope, path)
	if f == nil || f.Kind != ctf.Int && f.Kind != ctf.Uint {
		return Number{}
	}
	return Number{field: f, guarded: isGuarded(f)}
}

// textAt returns the text field at a path in a scope.
func textAt(class *ctf.EventClass, scope metadata.Scope, path string) Text {
	f := class.Field(scope, path)
	if f == nil || f.Kind != ctf.Text {
		return Text{}
	}
	return Text{field: f, guarded: isGuarded(f)}
}

// isGuarded reports whether f lies in a variant or in an optional field.
func isGuarded(f *ctf.Field) bool {
	for around := f.Parent; around != nil; around = around.Parent {
		if around.Kind == ctf.Variant || around.Kind == ctf.Optional {
			return true
		}
	}
	return false
}

// exists reports whether events of the class can have the field.
func (n Number) exists() bool { return n.field != nil }
func (t Text) exists() bool   { return t.field != nil }

// Value returns the number of an event, or false if the event has none. An unsigned number above 2^63-1 keeps its
// bits.
func (n Number) Value(v *ctf.Values) (int64, bool) {
	if n.field == nil || n.guarded && !v.Present(n.field) {
		return 0, false
	}
	return v.Int(n.field), true
}

// Bytes returns the text of an event, or nil if the event has none. The bytes are valid until the next event.
func (t Text) Bytes(v *ctf.Values) []byte {
	if t.field == nil || t.guarded && !v.Present(t.field) {
		return nil
	}
	return v.Text(t.field)
}

// Decode returns the text of bytes of the field as valid UTF-8.
func (t Text) Decode(b []byte) string {
	if t.modified {
		return mutf8.Decode(b)
	}
	return ValidString(b)
}

// scalar is an integer or text field of an event, or of the context of its packet. The zero value is a field that no
// event has.
type scalar struct {
	field    *ctf.Field
	inPacket bool
}

// scalarAt returns the field at a path: in the payload, or else in a context of the event or of the packet.
func scalarAt(class *ctf.EventClass, path string) scalar {
	if path == "" {
		return scalar{}
	}
	for _, scope := range [...]metadata.Scope{metadata.EventFields, metadata.EventContext, metadata.EventCommonContext, metadata.PacketContext} {
		f := class.Field(scope, path)
		if f != nil && (f.Kind == ctf.Int || f.Kind == ctf.Uint || f.Kind == ctf.Text) {
			return scalar{f, scope == metadata.PacketContext}
		}
	}
	return scalar{}
}

// values returns the values that include the field, or nil if the event has none.
func (s scalar) values(e *ctf.Event, packet *ctf.Packet) *ctf.Values {
	v := &e.Values
	if s.inPacket {
		v = &packet.Values
	}
	if s.field == nil || !v.Present(s.field) {
		return nil
	}
	return v
}

// appendTo appends the value as text. It returns false if the event has none.
func (s scalar) appendTo(dst []byte, e *ctf.Event, packet *ctf.Packet) ([]byte, bool) {
	v := s.values(e, packet)
	if v == nil {
		return dst, false
	}
	return appendScalar(dst, v, s.field), true
}

// appendScalar appends an integer or a text as text.
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
