// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped reads the rest of a string that starts at begin and has its first escape at offset at.
func (s *scanner) escaped(begin, at int) []byte {
	text := append(s.unescaped[:0], s.data[begin:at]...)
	for at < len(s.data) {
		switch c := s.data[at]; {
		case c == '"':
			s.at = at + 1
			s.unescaped = text
			if !utf8.Valid(text) {
				s.fail(begin, "UTF-8", "invalid bytes")
				return nil
			}
			s.space()
			return text
		case c < ' ':
			s.at = at
			s.unexpected("no control character in a string")
			return nil
		case c != '\\':
			text = append(text, c)
			at++
		default:
			var n int
			if text, n = appendEscape(text, s.data[at:]); n == 0 {
				s.at = at
				s.fail(at, "an escape", fmt.Sprintf("%.6q", s.data[at:]))
				return nil
			}
			at += n
		}
	}
	s.at = len(s.data)
	s.unexpected("the end of a string")
	return nil
}

// appendEscape adds the character of an escape and returns the escape's length; 0 means that it is invalid. Half of a
// surrogate pair becomes the replacement character.
func appendEscape(to, escape []byte) ([]byte, int) {
	if len(escape) < 2 {
		return to, 0
	}
	switch c := escape[1]; c {
	case '"', '\\', '/':
		return append(to, c), 2
	case 'b':
		return append(to, '\b'), 2
	case 'f':
		return append(to, '\f'), 2
	case 'n':
		return append(to, '\n'), 2
	case 'r':
		return append(to, '\r'), 2
	case 't':
		return append(to, '\t'), 2
	case 'u':
		r, ok := hex(escape)
		if !ok {
			return to, 0
		}
		if utf16.IsSurrogate(r) {
			if low, ok := hex(escape[6:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return utf8.AppendRune(to, pair), 12
				}
			}
		}
		return utf8.AppendRune(to, r), 6
	}
	return to, 0
}

// hex reads \uXXXX.
func hex(escape []byte) (rune, bool) {
	if len(escape) < 6 || escape[0] != '\\' || escape[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(escape[2:6]), 16, 16)
	return rune(n), err == nil
}
