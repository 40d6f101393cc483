// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// AppendText appends the text of a field of kind Text as UTF-8. Invalid text in encodings of two or four bytes
// becomes U+FFFD. Bytes of other encodings are copied unchanged.
func (v *Values) AppendText(dst []byte, f *Field) []byte {
	text := v.Text(f)
	switch f.Encoding() {
	case metadata.UTF16LE:
		return appendUTF16(dst, text, binary.LittleEndian)
	case metadata.UTF16BE:
		return appendUTF16(dst, text, binary.BigEndian)
	case metadata.UTF32LE:
		return appendUTF32(dst, text, binary.LittleEndian)
	case metadata.UTF32BE:
		return appendUTF32(dst, text, binary.BigEndian)
	}
	return append(dst, text...)
}

func appendUTF16(dst, text []byte, order binary.ByteOrder) []byte {
	for len(text) >= 2 {
		r := rune(order.Uint16(text))
		text = text[2:]
		if utf16.IsSurrogate(r) {
			second := rune(-1)
			if len(text) >= 2 {
				second = rune(order.Uint16(text))
			}
			if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
				text = text[2:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func appendUTF32(dst, text []byte, order binary.ByteOrder) []byte {
	for ; len(text) >= 4; text = text[4:] {
		dst = utf8.AppendRune(dst, rune(order.Uint32(text)))
	}
	return dst
}
