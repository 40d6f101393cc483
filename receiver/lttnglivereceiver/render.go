// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// render writes the value of a field as an attribute has it. It returns false, with any
// part of it written, where that is too large for the record. An unsigned number that is
// none of 64 bits with sign is written in digits, an enumeration by its label.
func render(dst pcommon.Value, v *ctf.Values, f *ctf.Field, size *recordSize) bool {
	switch f.Kind {
	case ctf.Int, ctf.Uint:
		return renderInteger(dst, v, f, size)
	case ctf.Float:
		dst.SetDouble(v.Float(f))
	case ctf.Text:
		// Encodings of two and four bytes have fewer of them in UTF-8, or half as many more.
		if !size.take(len(v.Text(f))) {
			return false
		}
		dst.SetStr(validText(v, f))
	case ctf.Bytes:
		b := v.Bytes(f)
		if !size.take(len(b)) {
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

func renderInteger(dst pcommon.Value, v *ctf.Values, f *ctf.Field, size *recordSize) bool {
	t, _ := f.Type.(*metadata.Integer)
	if t != nil && t.Boolean {
		dst.SetBool(v.Uint(f) != 0)
		return true
	}
	if label := strings.TrimPrefix(f.Label(v), "_"); label != "" {
		dst.SetStr(label)
		return size.take(len(label))
	}
	if n := v.Uint(f); f.Kind == ctf.Uint && n > math.MaxInt64 {
		dst.SetStr(strconv.FormatUint(n, 10))
		return size.take(20)
	}
	dst.SetInt(v.Int(f))
	return true
}

func renderStruct(dst pcommon.Map, v *ctf.Values, f *ctf.Field, size *recordSize) bool {
	n := len(f.Members)
	if n > maxAttributes || !size.take(n*bytesOfValue) {
		return false
	}
	dst.EnsureCapacity(n)
	for _, m := range f.Members {
		if !size.take(len(m.Name)) || !render(dst.PutEmpty(m.Name), v, m, size) {
			return false
		}
	}
	return true
}

func renderArray(dst pcommon.Slice, v *ctf.Values, f *ctf.Field, size *recordSize) bool {
	n := v.Len(f)
	if !size.take(n * bytesOfValue) {
		return false
	}
	dst.EnsureCapacity(n)
	// Declared inside of the loop it would be allocated for each element.
	var element ctf.Values
	for i := range n {
		element = v.Element(f, i)
		if !render(dst.AppendEmpty(), &element, f.Members[0], size) {
			return false
		}
	}
	return true
}

// validText is the text of a field as a string of UTF-8.
func validText(v *ctf.Values, f *ctf.Field) string {
	switch f.Encoding() {
	case metadata.UTF16BE, metadata.UTF16LE, metadata.UTF32BE, metadata.UTF32LE:
		return string(v.AppendText(nil, f))
	}
	return validString(v.Text(f))
}

// validString is b as a string, with what is no UTF-8 replaced.
func validString(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// isEmpty reports whether a field says nothing in an event: a variant or an optional
// field that has nothing selected, or an empty structure.
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
