// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

// splitter finds the ends of fragments in text that comes in pieces. Each byte is
// looked at once, however small the pieces are.
type splitter struct {
	state splitState
	depth int
}

// splitState is what the bytes before were.
type splitState uint8

const (
	betweenFragments splitState = iota // blanks or a record separator
	inFragment                         // a fragment, outside of strings
	inString
	inEscape // behind a backslash in a string
)

// scan reads text, which continues what was scanned before, up to the end of a
// fragment: behind its last brace, or before the record separator of the next. It
// returns how many bytes these are, and whether a fragment ends there.
func (s *splitter) scan(text []byte) (int, bool) {
	for i, c := range text {
		if c == RecordSeparator {
			// No string has one: a fragment ends here, whatever is in it.
			ended := s.state != betweenFragments
			*s = splitter{}
			if ended {
				return i, true
			}
			continue
		}
		switch s.state {
		case betweenFragments, inFragment:
			if s.structure(c) {
				*s = splitter{}
				return i + 1, true
			}
		case inString:
			switch c {
			case '"':
				s.state = inFragment
			case '\\':
				s.state = inEscape
			}
		case inEscape:
			s.state = inString
		}
	}
	return len(text), false
}

// structure takes a byte outside of strings and says whether an object ends with it.
func (s *splitter) structure(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n':
		return false
	case '"':
		s.state = inString
		return false
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
		if s.depth <= 0 {
			return true
		}
	}
	s.state = inFragment
	return false
}
