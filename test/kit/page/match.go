// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"regexp"
	"strings"
)

const (
	// anything stands for omitted text in a page.
	anything = "…"
	// blank and number stand for all of their kind when lines are compared.
	blank, number = " ", "0"
)

var (
	blanks  = regexp.MustCompile(`[ \t]+`)
	numbers = regexp.MustCompile(`\d+(\.\d+)?(e[-+]\d+)?`)
)

// shown is an output in a page, for comparison.
type shown struct {
	lines   []*regexp.Regexp
	theLike bool
}

// newShown is a text of a page. The like has other numbers.
func newShown(text string, theLike bool) shown {
	s := shown{theLike: theLike}
	for line := range strings.Lines(text) {
		parts := strings.Split(s.plain(line), anything)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		s.lines = append(s.lines, regexp.MustCompile("^"+strings.Join(parts, ".*")+"$"))
	}
	return s
}

// plain returns a line without the parts that are not compared.
func (s shown) plain(line string) string {
	line = strings.TrimSpace(blanks.ReplaceAllString(line, blank))
	if s.theLike {
		line = numbers.ReplaceAllString(line, number)
	}
	return line
}

// is reports whether a text equals the output, line for line.
func (s shown) is(text string) bool {
	n := 0
	for line := range strings.Lines(text) {
		if n == len(s.lines) || !s.lines[n].MatchString(s.plain(line)) {
			return false
		}
		n++
	}
	return n == len(s.lines)
}

// in reports whether the lines that are shown are in a text, in their order.
func (s shown) in(text string) bool {
	n := 0
	for line := range strings.Lines(text) {
		if n < len(s.lines) && s.lines[n].MatchString(s.plain(line)) {
			n++
		}
	}
	return n == len(s.lines)
}
