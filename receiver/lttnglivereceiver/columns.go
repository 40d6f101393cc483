// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// column is a field that becomes an attribute.
type column struct {
	key   string
	field *ctf.Field
	form  columnForm
}

// columnForm is how a field becomes an attribute, as far as its type says it.
type columnForm uint8

const (
	// formAny: the value says it.
	formAny columnForm = iota
	// formOptional: likewise, and the field may be empty: then there is no attribute.
	formOptional
	// formNumber is a number that always has 64 bits with sign, and no name.
	formNumber
	// formUnsigned is one of 64 bits without sign: one that is too large is written in
	// digits.
	formUnsigned
	// formText is text of one byte a character, or of UTF-8.
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

// write writes the attribute, if the field has something to say. What is too large for
// the record is left out.
func (c *column) write(attributes pcommon.Map, v *ctf.Values, known *texts, size *recordSize) {
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
		b, before := v.Text(c.field), size.bytes
		if !size.take(len(b)) {
			size.leaveOut(before)
			return
		}
		attributes.PutStr(c.key, known.text(b))
		return
	case formOptional:
		if isEmpty(v, c.field) {
			return
		}
	}
	before := size.bytes
	if !render(attributes.PutEmpty(c.key), v, c.field, size) {
		attributes.Remove(c.key)
		size.leaveOut(before)
	}
}
