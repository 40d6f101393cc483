// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"fmt"
	"math"
	"strconv"
	"strings"

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
	// isDevice is set if the value is the number of a device, which is written in the form deviceForm.
	isDevice bool
}

// formMark stands between the path of a field and the form of its value.
const formMark = ":"

// deviceForm is the form MAJOR:MINOR of a device's number in Linux, as lsblk prints it.
const deviceForm = "device"

// deviceMinorBits is MINORBITS of Linux: the number of bits of a device's number that are its minor number.
const deviceMinorBits = 20

// cutForm returns the path of a field without its form.
func cutForm(path string) (field string, isDevice bool) {
	return strings.CutSuffix(path, formMark+deviceForm)
}

// validateForm returns an error if the path of a field has an unknown form.
func validateForm(path string) error {
	if field, _ := cutForm(path); strings.Contains(field, formMark) || field == "" {
		return fmt.Errorf("field is %q: write its name, or its name and %s%s for the number of a device", path, formMark, deviceForm)
	}
	return nil
}

// scalarAt returns the field at a path, which may have a form: in the payload, or else in a context of the event or of
// the packet. Only an integer can have the form of a device.
func scalarAt(class *ctf.EventClass, path string) scalar {
	path, isDevice := cutForm(path)
	if path == "" {
		return scalar{}
	}
	for _, scope := range [...]metadata.Scope{metadata.EventFields, metadata.EventContext, metadata.EventCommonContext, metadata.PacketContext} {
		f := class.Field(scope, path)
		if f != nil && (f.Kind == ctf.Int || f.Kind == ctf.Uint || f.Kind == ctf.Text && !isDevice) {
			return scalar{f, scope == metadata.PacketContext, isDevice}
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
	if s.isDevice {
		return appendDevice(dst, v, s.field), true
	}
	return appendScalar(dst, v, s.field), true
}

// appendDevice appends the number of a device in the form deviceForm.
func appendDevice(dst []byte, v *ctf.Values, f *ctf.Field) []byte {
	device := v.Uint(f)
	if n := v.Int(f); f.Kind == ctf.Int && n < 0 && n >= math.MinInt32 {
		device = uint64(uint32(n)) // dev_t has 32 bits without sign
	}
	dst = append(strconv.AppendUint(dst, device>>deviceMinorBits, 10), ':')
	return strconv.AppendUint(dst, device&(1<<deviceMinorBits-1), 10)
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
