// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

// splitter finds the ends of declarations in text that arrives in pieces: semicolons outside braces, comments and
// strings.
type splitter struct {
	mode  splitMode
	depth int
}

// splitMode is the splitter's state after the previous bytes.
type splitMode uint8

const (
	inText         splitMode = iota
	afterSlash               // a slash that may begin a comment
	inLineComment            // up to the end of the line
	inBlockComment           // up to its end
	afterStar                // a star in a block comment
	inString                 // up to a double quote
	inStringEscape           // after a backslash
	inCharacter              // up to a single quote
	inCharEscape             // after a backslash
)

// scan reads text, which continues the previously scanned text. It returns the length of the complete declarations in
// it, or 0 if no declaration ends in it.
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
			if s.endsDeclaration(c) {
				end = i + 1
			}
		}
	}
	return end
}

// endsDeclaration reads a byte outside strings and comments and reports whether a declaration ends with it.
func (s *splitter) endsDeclaration(c byte) bool {
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
		// The parser reports superfluous closing braces.
		s.depth = max(0, s.depth-1)
	case ';':
		return s.depth == 0
	}
	return false
}
