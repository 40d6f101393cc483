// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

// splitter finds the ends of fragments in text that arrives in pieces. It looks at each byte once, independent of the
// sizes of the pieces.
type splitter struct {
	state splitState
	depth int
}

// splitState is the splitter's state after the previous bytes.
type splitState uint8

const (
	betweenFragments splitState = iota // blanks or a record separator
	inFragment                         // a fragment, outside of strings
	inString
	inEscape // after a backslash in a string
)

// scan reads text, which continues the previously scanned text, up to the end of a fragment: after its last brace, or
// before the next record separator. It returns the number of bytes it read, and whether a fragment ends there.
func (s *splitter) scan(text []byte) (int, bool) {
	for i, c := range text {
		if c == RecordSeparator {
			// Strings contain no record separator, so a fragment ends here in any state.
			ended := s.state != betweenFragments
			*s = splitter{}
			if ended {
				return i, true
			}
			continue
		}
		switch s.state {
		case betweenFragments, inFragment:
			if s.endsObject(c) {
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

// endsObject reads a byte outside strings and reports whether an object ends with it.
func (s *splitter) endsObject(c byte) bool {
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
