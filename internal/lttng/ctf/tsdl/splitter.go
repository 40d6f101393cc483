// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

// splitter finds the ends of declarations in text that comes in pieces: semicolons
// outside of braces, comments and strings.
type splitter struct {
	mode  splitMode
	depth int
}

// splitMode is what the bytes before were.
type splitMode uint8

const (
	inText         splitMode = iota
	afterSlash               // a slash that may begin a comment
	inLineComment            // to the end of the line
	inBlockComment           // to its end
	afterStar                // a star in a block comment
	inString                 // to a double quote
	inStringEscape           // behind a backslash
	inCharacter              // to a single quote
	inCharEscape             // behind a backslash
)

// scan reads text, which continues what was scanned before, and returns how much of
// it belongs to declarations that are complete; 0 if none ends in it.
func (s *splitter) scan(text []byte) int {
	end := 0
	for i, c := range text {
		switch s.mode {
		case inLineComment:
			if c == '\n' {
				s.mode = inText
			}
		case inBlockComment, afterStar:
			switch {
			case c == '*':
				s.mode = afterStar
			case c == '/' && s.mode == afterStar:
				s.mode = inText
			default:
				s.mode = inBlockComment
			}
		case inString, inCharacter:
			switch {
			case c == '\\':
				s.mode++
			case c == '"' && s.mode == inString, c == '\'' && s.mode == inCharacter:
				s.mode = inText
			}
		case inStringEscape, inCharEscape:
			s.mode--
		case inText, afterSlash:
			if s.text(c) {
				end = i + 1
			}
		}
	}
	return end
}

// text takes a byte outside of strings and comments and says whether a declaration
// ends with it.
func (s *splitter) text(c byte) bool {
	slash := s.mode == afterSlash
	s.mode = inText
	switch c {
	case '/':
		s.mode = afterSlash
		if slash {
			s.mode = inLineComment
		}
	case '*':
		if slash {
			s.mode = inBlockComment
		}
	case '"':
		s.mode = inString
	case '\'':
		s.mode = inCharacter
	case '{', '[', '(':
		s.depth++
	case '}', ']', ')':
		// One too many is the parser's to say.
		s.depth = max(0, s.depth-1)
	case ';':
		return s.depth == 0
	}
	return false
}
