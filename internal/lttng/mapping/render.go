// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// render writes the value of a field into an attribute. It returns false if the value is too large
// for the record; then the attribute has a part of it. An unsigned number above 2^63-1 is written as
// text, an enumeration by its label.
func render(dst pcommon.Value, v *ctf.Values, f *ctf.Field, size *RecordSize) bool {
	switch f.Kind {
	case ctf.Int, ctf.Uint:
		return renderInteger(dst, v, f, size)
	case ctf.Float:
		dst.SetDouble(v.Float(f))
	case ctf.Text:
		// UTF-8 needs at most half as many bytes more than encodings of two and four bytes.
		if !size.reserve(len(v.Text(f))) {
			return false
		}
		dst.SetStr(validText(v, Text{field: f}))
	case ctf.Bytes:
		b := v.Bytes(f)
		if !size.reserve(len(b)) {
			return false
		}
		dst.SetEmptyBytes().FromRaw(b)
	case ctf.Struct:
		return renderStruct(dst.SetEmptyMap(), v, f, size)
	case ctf.Variant, ctf.Optional:
		if option := v.Option(f); option != nil {
			return render(dst, v, option, size)
		}
	case ctf.Array:
		return renderArray(dst.SetEmptySlice(), v, f, size)
	}
	return true
}

func renderInteger(dst pcommon.Value, v *ctf.Values, f *ctf.Field, size *RecordSize) bool {
	t, _ := f.Type.(*metadata.Integer)
	if t != nil && t.Boolean {
		dst.SetBool(v.Uint(f) != 0)
		return true
	}
	if label := f.Label(v); label != "" {
		dst.SetStr(label)
		return size.reserve(len(label))
	}
	if n := v.Uint(f); f.Kind == ctf.Uint && n > math.MaxInt64 {
		dst.SetStr(strconv.FormatUint(n, 10))
		return size.reserve(20)
	}
	dst.SetInt(v.Int(f))
	return true
}

func renderStruct(dst pcommon.Map, v *ctf.Values, f *ctf.Field, size *RecordSize) bool {
	n := len(f.Members)
	if n > maxAttributes || !size.reserve(n*valueBytes) {
		return false
	}
	dst.EnsureCapacity(n)
	for _, m := range f.Members {
		if !size.reserve(len(m.Name)) || !render(dst.PutEmpty(m.Name), v, m, size) {
			return false
		}
	}
	return true
}

func renderArray(dst pcommon.Slice, v *ctf.Values, f *ctf.Field, size *RecordSize) bool {
	n := v.Len(f)
	if !size.reserve(n * valueBytes) {
		return false
	}
	dst.EnsureCapacity(n)
	// Declared inside the loop, it would be allocated for each element.
	var element ctf.Values
	for i := range n {
		element = v.Element(f, i)
		if !render(dst.AppendEmpty(), &element, f.Members[0], size) {
			return false
		}
	}
	return true
}

// validText returns the text of a field as a string of valid UTF-8.
func validText(v *ctf.Values, of Text) string {
	switch of.field.Encoding() {
	case metadata.UTF16BE, metadata.UTF16LE, metadata.UTF32BE, metadata.UTF32LE:
		return string(v.AppendText(nil, of.field))
	}
	return of.Decode(v.Text(of.field))
}

// ValidString returns b as a string, with U+FFFD in place of each invalid part.
func ValidString(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// isEmpty reports whether a field has no value in an event: a variant or an optional field without
// a selected option, or an empty structure.
func isEmpty(v *ctf.Values, f *ctf.Field) bool {
	switch f.Kind {
	case ctf.Struct:
		return len(f.Members) == 0
	case ctf.Variant, ctf.Optional:
		option := v.Option(f)
		return option == nil || isEmpty(v, option)
	}
	return false
}
