// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import (
	"slices"
	"unicode/utf16"
)

// Classes is a set of classes of a program: the ones whose names match a pattern or a Java regular expression.
type Classes struct {
	Pattern Pattern
	Regexp  bool
}

// MayOverlap reports whether both may match the same class. It compares names only. A regular expression may match any
// class.
func (c Classes) MayOverlap(other Classes) bool {
	if c.Regexp || other.Regexp {
		return true
	}
	return overlap(wildcards(c.Pattern.text), wildcards(other.Pattern.text))
}

// MayOverlapAny reports whether one of others may match a class that c matches.
func (c Classes) MayOverlapAny(others []Classes) bool {
	return slices.ContainsFunc(others, c.MayOverlap)
}

// Matches reports whether the pattern, with * and ?, matches a text.
func (p Pattern) Matches(text string) bool {
	return overlap(wildcards(p.text), plainUnits(text))
}

// MayMatchSimpleName reports whether the pattern may match a class of this simple name in any
// package.
func (p Pattern) MayMatchSimpleName(simple string) bool {
	return overlap(wildcards(p.text), append([]wildcard{anyMany, '.'}, plainUnits(simple)...))
}

// wildcard is one unit of a pattern: a UTF-16 unit, as Java has them, or one of the constants
// below.
type wildcard int32

const (
	anyOne  wildcard = -1
	anyMany wildcard = -2
)

// wildcards splits a pattern into its units: * is any number of characters, ? is one, and a
// backslash quotes the next unit.
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

// plainUnits splits a text into units that each match only themselves.
func plainUnits(text string) []wildcard {
	plain := make([]wildcard, 0, len(text))
	for _, unit := range utf16.Encode([]rune(text)) {
		plain = append(plain, wildcard(unit))
	}
	return plain
}

// overlap reports whether a text exists that both patterns match. Entry j of row i tells whether a[i:] and b[j:] can
// match the same text. The table is computed from its end. Only two of its rows exist at a time.
func overlap(a, b []wildcard) bool {
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
