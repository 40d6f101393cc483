// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"unicode/utf8"
)

// scanner reads JSON (RFC 8259) from its beginning to its end. What is wrong ends it: the
// first error stays, and whatever is asked for after it is nothing.
//
// It is our own since it keeps no tree: what a reply takes in memory is what is made of it.
// Libraries that do, or that go by reflection, take 3 to 20 times as long.
type scanner struct {
	data []byte
	at   int
	// fresh says that an array or object was opened just now.
	fresh bool
	depth int
	// unescaped is the last text that had escapes.
	unescaped []byte
	err       *ProtocolError
}

// maxDepth is how deep arrays and objects may lie in one another.
const maxDepth = 64

func (s *scanner) open(data []byte) {
	*s = scanner{data: data, unescaped: s.unescaped[:0]}
	s.space()
}

// isJSON says that data are JSON, whatever they say.
func isJSON(data []byte) bool {
	var s scanner
	s.open(data)
	s.skip()
	return s.close() == nil
}

// close says that all was read, and what was wrong.
func (s *scanner) close() error {
	if s.space(); s.err == nil && s.at < len(s.data) {
		s.unexpected("the end")
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// fail ends reading at a place.
func (s *scanner) fail(at int, expected, got string) {
	if s.err == nil {
		s.err = &ProtocolError{Offset: int64(at), Expected: expected, Got: got}
		s.at = len(s.data)
	}
}

// unexpected fails with what stands here.
func (s *scanner) unexpected(expected string) {
	got := "the end"
	if s.at < len(s.data) {
		got = fmt.Sprintf("%q", s.data[s.at])
	}
	s.fail(s.at, expected, got)
}

// peek is the next byte; 0 at the end.
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

// enter reads the beginning of an array or object.
func (s *scanner) enter(bracket byte) {
	switch {
	case s.peek() != bracket:
		s.unexpected(fmt.Sprintf("%q", bracket))
	case s.depth == maxDepth:
		s.unexpected(fmt.Sprintf("at most %d arrays and objects in one another", maxDepth))
	default:
		s.at++
		s.depth++
		s.fresh = true
		s.space()
	}
}

// more says that another element of the array or object follows, and leaves it otherwise.
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

// key reads the name of a member. It is valid until the next text is read.
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

// text reads a text. It is valid until the next one is read.
func (s *scanner) text() []byte {
	if s.peek() != '"' {
		s.unexpected("a text")
		return nil
	}
	begin, ascii := s.at+1, true
	for at := begin; at < len(s.data); at++ {
		switch c := s.data[at]; {
		case c == '"':
			text := s.data[begin:at]
			if !ascii && !utf8.Valid(text) {
				s.fail(begin, "UTF-8", "something else")
				return nil
			}
			s.at = at + 1
			s.space()
			return text
		case c == '\\':
			return s.escaped(begin, at)
		case c < ' ':
			s.at = at
			s.unexpected("no control character in a text")
			return nil
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.at = len(s.data)
	s.unexpected("the end of a text")
	return nil
}

// scalar reads a text, a number or a truth, as it stands there, and gives nil for null.
// isText says that it is a text.
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
		s.unexpected("a text, a number or a truth")
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

// digits reads one, and those that follow.
func (s *scanner) digits() {
	if !isDigit(s.peek()) {
		s.unexpected("a digit")
	}
	for isDigit(s.peek()) {
		s.at++
	}
}

// elements reads an array, or null, which has none.
func (s *scanner) elements(read func()) {
	if s.peek() == 'n' {
		s.word("null")
		return
	}
	for s.enter('['); s.more(']'); {
		read()
	}
}

// members reads an object, or null, which has none. A key is valid until something is read.
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

// skip reads a value, whatever it is.
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
