// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"bytes"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// column is a field that becomes an attribute of a log record.
type column struct {
	key   string
	field *ctf.Field
	form  columnForm
}

// columnForm determines how a field becomes an attribute, as far as that depends on the field's type.
type columnForm uint8

const (
	// formAny: it depends on the value.
	formAny columnForm = iota
	// formOptional: like formAny, but an empty field makes no attribute.
	formOptional
	// formNumber is a number that always fits into a signed 64-bit integer, and has no label.
	formNumber
	// formUnsigned is an unsigned number of 64 bits. A number above 2^63-1 is written as text.
	formUnsigned
	// formText is text in UTF-8 or in an encoding of one byte for each character.
	formText
	// formSequence is such text of a length that another field holds. It can contain NUL.
	formSequence
	// formHexadecimal is a number in the base 16, as text.
	formHexadecimal
)

// newColumn returns the column of a field. hexadecimal is Records.Hexadecimal.
func newColumn(key string, f *ctf.Field, hexadecimal bool) column {
	return column{key: key, field: f, form: formOf(f, hexadecimal)}
}

func formOf(f *ctf.Field, hexadecimal bool) columnForm {
	switch f.Kind {
	case ctf.Variant, ctf.Optional, ctf.Struct:
		return formOptional
	case ctf.Int, ctf.Uint:
		switch t, ok := f.Type.(*metadata.Integer); {
		case !ok || t.Enum || t.Boolean:
			return formAny
		case hexadecimal && t.Base == 16:
			return formHexadecimal
		default:
			return formOfNumber(f, t)
		}
	case ctf.Text:
		switch {
		case f.Encoding().Unit() != 1:
		case isSequence(f):
			return formSequence
		default:
			return formText
		}
	}
	return formAny
}

// formOfNumber returns the form of an integer as a number.
func formOfNumber(f *ctf.Field, t *metadata.Integer) columnForm {
	if f.Kind == ctf.Int || !t.Variable && t.Size < 64 {
		return formNumber
	}
	return formUnsigned
}

// isSequence reports whether another field holds the length of a text.
func isSequence(f *ctf.Field) bool {
	switch t := f.Type.(type) {
	case *metadata.Array:
		return t.LengthRef != nil
	case *metadata.Bytes:
		return t.LengthRef != nil
	}
	return false
}

// sequenceText returns the text of a sequence. It can contain NUL, and ends before the last ones.
func sequenceText(v *ctf.Values, f *ctf.Field) []byte { return bytes.TrimRight(v.Bytes(f), "\x00") }

// appendHexadecimal appends a number in the base 16, with as many digits as its type has bits for if it is negative.
func appendHexadecimal(dst []byte, v *ctf.Values, f *ctf.Field) []byte {
	n := v.Uint(f)
	if t := f.Type.(*metadata.Integer); !t.Variable && t.Size < 64 {
		n &= 1<<t.Size - 1
	}
	return strconv.AppendUint(append(dst, "0x"...), n, 16)
}

// write writes the attribute, unless the field is empty. It omits a value that is too large for the record.
func (c *column) write(attributes *xpdata.MapBuilder, v *ctf.Values, known *Texts, size *RecordSize) {
	switch c.form {
	case formNumber:
		known.setNumber(attributes.AppendEmpty(c.key), v.Int(c.field))
		return
	case formUnsigned:
		if n := v.Int(c.field); n >= 0 {
			known.setNumber(attributes.AppendEmpty(c.key), n)
			return
		}
	case formText:
		c.writeText(attributes, v.Text(c.field), known, size)
		return
	case formSequence:
		c.writeText(attributes, sequenceText(v, c.field), known, size)
		return
	case formHexadecimal:
		var digits [18]byte
		c.writeText(attributes, appendHexadecimal(digits[:0], v, c.field), known, size)
		return
	case formOptional:
		if isEmpty(v, c.field) {
			return
		}
	}
	before := size.Bytes
	if !render(known.rendered, v, c.field, size) {
		known.rendered = pcommon.NewValueEmpty()
		size.leaveOut(before)
		return
	}
	known.rendered.MoveTo(attributes.AppendEmpty(c.key))
}

// writeText writes a text, unless it is too large for the record.
func (c *column) writeText(attributes *xpdata.MapBuilder, b []byte, known *Texts, size *RecordSize) {
	before := size.Bytes
	if !size.reserve(len(b)) {
		size.leaveOut(before)
		return
	}
	known.setText(attributes.AppendEmpty(c.key), b, Text{})
}
