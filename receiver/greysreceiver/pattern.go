// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"slices"
	"unicode/utf16"

	"github.com/callbraid/callbraid/internal/greys"
)

// classes names classes, by a pattern or by a regular expression.
type classes struct {
	pattern greys.Pattern
	regexp  bool
}

// mayMeet reports whether there may be a class that both name. It is decided by their names
// alone, and with regular expressions there always may.
func (c classes) mayMeet(other classes) bool {
	if c.regexp || other.regexp {
		return true
	}
	return meet(wildcards(c.pattern.String()), wildcards(other.pattern.String()))
}

// wildcard is one unit of a pattern: a character, as Java has them, or one of those below.
type wildcard int32

const (
	anyOne  wildcard = -1
	anyMany wildcard = -2
)

// wildcards are the units of a pattern in which * is any number of characters, ? one, and
// what follows a backslash itself.
func wildcards(pattern string) (all []wildcard) {
	quoted := false
	for _, unit := range utf16.Encode([]rune(pattern)) {
		switch {
		case quoted:
			quoted = false
			all = append(all, wildcard(unit))
		case unit == '\\':
			quoted = true
		case unit == '*':
			all = append(all, anyMany)
		case unit == '?':
			all = append(all, anyOne)
		default:
			all = append(all, wildcard(unit))
		}
	}
	return all
}

// meet reports whether there is a text that both patterns match. Row i of a table says of
// each j whether the rests of a from i and of b from j can match the same; of the table two
// rows are kept.
func meet(a, b []wildcard) bool {
	below, row := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == anyMany:
				row[j] = below[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == anyMany:
				row[j] = row[j+1] || i < len(a) && below[j]
			case i == len(a) || j == len(b):
				row[j] = false
			default:
				row[j] = (a[i] == b[j] || a[i] == anyOne || b[j] == anyOne) && below[j+1]
			}
		}
		below, row = row, below
	}
	return below[0]
}

// matches reports whether a text is one that a pattern, without a regular expression,
// matches.
func matches(pattern greys.Pattern, text string) bool {
	return meet(wildcards(pattern.String()), units(text))
}

// units are those of a text, each of which stands for itself.
func units(text string) []wildcard {
	plain := make([]wildcard, 0, len(text))
	for _, unit := range utf16.Encode([]rune(text)) {
		plain = append(plain, wildcard(unit))
	}
	return plain
}

// mayMeetAny reports whether there may be a class that it and one of others name.
func (c classes) mayMeetAny(others []classes) bool {
	return slices.ContainsFunc(others, c.mayMeet)
}
