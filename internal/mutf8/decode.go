// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mutf8

import (
	"fmt"
	"unicode/utf8"
)

// SyntaxError has the position where a text is not modified UTF-8.
type SyntaxError struct {
	Offset int    // of the first wrong byte, from the start of the text
	Got    string // the actual bytes
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("byte %d: expected a character in modified UTF-8, got %s", e.Offset, e.Got)
}

// DecodeStrict returns the text of b. It returns a *SyntaxError for bytes that Append never writes: a zero byte, a
// character in more bytes than necessary, a four-byte sequence of plain UTF-8, or a surrogate without its partner.
func DecodeStrict(b []byte) (string, error) {
	if isPlainASCII(b) {
		return string(b), nil
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		r, n := decodeRune(b[i:])
		if n == 0 {
			return "", &SyntaxError{Offset: i, Got: describe(b[i:])}
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	return string(out), nil
}

// Decode returns the text of b and always succeeds. It is for names that people read: one wrong byte must not lose the
// rest. Each byte that begins no character, and each surrogate without its partner, becomes one U+FFFD. A zero byte and
// four-byte sequences of plain UTF-8 become their characters, because agents that are not Java may send them. The
// result is valid UTF-8 of at most three times the length of b.
func Decode(b []byte) string {
	if utf8.Valid(b) {
		// Bytes that are valid in both encodings have the same text.
		return string(b)
	}
	out := make([]byte, 0, len(b)+utf8.UTFMax)
	for i := 0; i < len(b); {
		r, n := decodeRune(b[i:])
		if n == 0 {
			r, n = decodeForeign(b[i:])
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	return string(out)
}

// DecodeBytes is Decode without a copy of text that is valid UTF-8.
func DecodeBytes(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return []byte(Decode(b))
}

// isPlainASCII reports whether all bytes are U+0001 to U+007F.
func isPlainASCII(b []byte) bool {
	for _, c := range b {
		if c == 0 || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decodeRune reads the character at the front of b, which is not empty. n is 0 if there is no valid character.
func decodeRune(b []byte) (r rune, n int) {
	switch c := b[0]; {
	case c == 0:
		return 0, 0
	case c < utf8.RuneSelf:
		return rune(c), 1
	case c == 0xC0 && len(b) > 1 && b[1] == 0x80:
		return 0, 2
	}
	if high, ok := surrogate(b); ok {
		if high >= lowSurrogateMin {
			return 0, 0
		}
		low, ok := surrogate(b[3:])
		if !ok || low < lowSurrogateMin {
			return 0, 0
		}
		return supplementaryMin + (high-highSurrogateMin)<<surrogateBits + low - lowSurrogateMin, 6
	}
	r, n = utf8.DecodeRune(b)
	if n == 1 || n == utf8.UTFMax {
		return 0, 0
	}
	return r, n
}

// decodeForeign reads a character that decodeRune refused, or returns U+FFFD.
func decodeForeign(b []byte) (r rune, n int) {
	if _, ok := surrogate(b); ok {
		return utf8.RuneError, 3
	}
	return utf8.DecodeRune(b)
}

// surrogate reads the three bytes of one half of a pair.
func surrogate(b []byte) (r rune, ok bool) {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), true
}

// describe describes bytes that decodeRune refused.
func describe(b []byte) string {
	if _, ok := surrogate(b); ok {
		return fmt.Sprintf("% X, a surrogate without its partner", b[:3])
	}
	if _, n := utf8.DecodeRune(b); n == utf8.UTFMax {
		return fmt.Sprintf("% X, four bytes of plain UTF-8", b[:n])
	}
	return fmt.Sprintf("% X", b[:min(len(b), 3)])
}
