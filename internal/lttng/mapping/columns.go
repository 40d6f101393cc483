// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

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
)

func newColumn(key string, f *ctf.Field) column {
	return column{key: key, field: f, form: formOf(f)}
}

func formOf(f *ctf.Field) columnForm {
	switch f.Kind {
	case ctf.Variant, ctf.Optional, ctf.Struct:
		return formOptional
	case ctf.Int, ctf.Uint:
		switch t, ok := f.Type.(*metadata.Integer); {
		case !ok || t.Enum || t.Boolean:
			return formAny
		case f.Kind == ctf.Int || !t.Variable && t.Size < 64:
			return formNumber
		default:
			return formUnsigned
		}
	case ctf.Text:
		if f.Encoding().Unit() == 1 {
			return formText
		}
	}
	return formAny
}

// write writes the attribute, unless the field is empty. It omits a value that is too large for the record.
func (c *column) write(attributes pcommon.Map, v *ctf.Values, known *Texts, size *RecordSize) {
	switch c.form {
	case formNumber:
		attributes.PutInt(c.key, v.Int(c.field))
		return
	case formUnsigned:
		if n := v.Int(c.field); n >= 0 {
			attributes.PutInt(c.key, n)
			return
		}
	case formText:
		b, before := v.Text(c.field), size.Bytes
		if !size.reserve(len(b)) {
			size.leaveOut(before)
			return
		}
		attributes.PutStr(c.key, known.text(b, Text{}))
		return
	case formOptional:
		if isEmpty(v, c.field) {
			return
		}
	}
	before := size.Bytes
	if !render(attributes.PutEmpty(c.key), v, c.field, size) {
		attributes.Remove(c.key)
		size.leaveOut(before)
	}
}
