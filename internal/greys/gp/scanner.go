// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"unicode/utf8"
)

// scanner reads JSON (RFC 8259) sequentially. The first error ends it; after that all methods return zero values.
//
// It builds no tree, so a reply takes no more memory than its decoded values. Libraries that build a tree or use
// reflection take 3 to 20 times as long.
type scanner struct {
	data []byte
	at   int
	// fresh means that an array or object has just been opened.
	fresh bool
	depth int
	// unescaped is the last string that had escapes.
	unescaped []byte
	err       *ProtocolError
}

// maxDepth is the maximum nesting of arrays and objects.
const maxDepth = 64

func (s *scanner) open(data []byte) {
	*s = scanner{data: data, unescaped: s.unescaped[:0]}
	s.space()
}

// isJSON reports whether data are JSON.
func isJSON(data []byte) bool {
	var s scanner
	s.open(data)
	s.skip()
	return s.close() == nil
}

// close checks that all data were read, and returns the first error.
func (s *scanner) close() error {
	if s.space(); s.err == nil && s.at < len(s.data) {
		s.unexpected("the end")
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// fail ends reading with an error at an offset.
func (s *scanner) fail(at int, expected, got string) {
	if s.err == nil {
		s.err = &ProtocolError{Offset: int64(at), Expected: expected, Got: got}
		s.at = len(s.data)
	}
}

// unexpected fails with the byte at the current offset.
func (s *scanner) unexpected(expected string) {
	got := "the end"
	if s.at < len(s.data) {
		got = fmt.Sprintf("%q", s.data[s.at])
	}
	s.fail(s.at, expected, got)
}

// peek returns the next byte; 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return
		}
	}
}

// enter reads the opening bracket of an array or object.
func (s *scanner) enter(bracket byte) {
	switch {
	case s.peek() != bracket:
		s.unexpected(fmt.Sprintf("%q", bracket))
	case s.depth == maxDepth:
		s.unexpected(fmt.Sprintf("at most %d nested arrays and objects", maxDepth))
	default:
		s.at++
		s.depth++
		s.fresh = true
		s.space()
	}
}

// more reports whether another element follows. Otherwise it reads the closing bracket.
func (s *scanner) more(bracket byte) bool {
	switch {
	case s.err != nil:
		return false
	case s.peek() == bracket:
		s.at++
		s.depth--
		s.fresh = false
		s.space()
		return false
	case s.fresh:
		s.fresh = false
		return true
	case s.peek() == ',':
		s.at++
		if s.space(); s.peek() == bracket {
			s.unexpected("an element behind the comma")
			return false
		}
		return true
	default:
		s.unexpected(fmt.Sprintf("a comma or %q", bracket))
		return false
	}
}

// key reads the name of a member. It is valid until the next string is read.
func (s *scanner) key() []byte {
	key := s.text()
	if s.peek() != ':' {
		s.unexpected("a colon")
		return nil
	}
	s.at++
	s.space()
	return key
}

// text reads a string. It is valid until the next one is read.
func (s *scanner) text() []byte {
	if s.peek() != '"' {
		s.unexpected("a string")
		return nil
	}
	begin, ascii := s.at+1, true
	for at := begin; at < len(s.data); at++ {
		switch c := s.data[at]; {
		case c == '"':
			text := s.data[begin:at]
			if !ascii && !utf8.Valid(text) {
				s.fail(begin, "UTF-8", "invalid bytes")
				return nil
			}
			s.at = at + 1
			s.space()
			return text
		case c == '\\':
			return s.escaped(begin, at)
		case c < ' ':
			s.at = at
			s.unexpected("no control character in a string")
			return nil
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.at = len(s.data)
	s.unexpected("the end of a string")
	return nil
}

// scalar reads a string, a number or a boolean as bytes. It returns nil for null. isText means that the value is a
// string.
func (s *scanner) scalar() (value []byte, isText bool) {
	switch c := s.peek(); {
	case c == '"':
		return s.text(), true
	case c == '-' || isDigit(c):
		return s.number(), false
	case c == 't':
		return s.word("true"), false
	case c == 'f':
		return s.word("false"), false
	case c == 'n':
		s.word("null")
		return nil, false
	default:
		s.unexpected("a string, a number or a boolean")
		return nil, false
	}
}

func (s *scanner) word(word string) []byte {
	if end := s.at + len(word); end <= len(s.data) && string(s.data[s.at:end]) == word {
		s.at = end
		s.space()
		return s.data[end-len(word) : end]
	}
	s.unexpected(word)
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number reads a number.
func (s *scanner) number() []byte {
	begin := s.at
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else {
		s.digits()
	}
	if s.peek() == '.' {
		s.at++
		s.digits()
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		s.digits()
	}
	if s.err != nil {
		return nil
	}
	number := s.data[begin:s.at]
	s.space()
	return number
}

// digits reads one or more digits.
func (s *scanner) digits() {
	if !isDigit(s.peek()) {
		s.unexpected("a digit")
	}
	for isDigit(s.peek()) {
		s.at++
	}
}

// elements reads an array. It accepts null as an empty one.
func (s *scanner) elements(read func()) {
	if s.peek() == 'n' {
		s.word("null")
		return
	}
	for s.enter('['); s.more(']'); {
		read()
	}
}

// members reads an object. It accepts null as an empty one. A key is valid until the next value is read.
func (s *scanner) members(read func(key []byte)) {
	if s.peek() == 'n' {
		s.word("null")
		return
	}
	for s.enter('{'); s.more('}'); {
		if key := s.key(); s.err == nil {
			read(key)
		}
	}
}

// skip reads a value of any kind.
func (s *scanner) skip() {
	switch s.peek() {
	case '{':
		s.members(func([]byte) { s.skip() })
	case '[':
		s.elements(s.skip)
	default:
		s.scalar()
	}
}
