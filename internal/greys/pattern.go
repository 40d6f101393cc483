// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxPatternBytes is how long a pattern may be.
const MaxPatternBytes = 1024

// Pattern is a pattern of names that stays one argument of a command, whichever protocol
// carries it: it holds no white space, quotes or control characters, and does not begin
// with a hyphen. The zero value is none, which no command may have.
type Pattern struct{ text string }

// NewPattern makes a pattern of text. The error says which character stands where none of
// its kind may.
func NewPattern(text string) (Pattern, error) {
	switch {
	case text == "":
		return Pattern{}, fmt.Errorf("pattern is empty: expected one of names, such as com.example.*")
	case len(text) > MaxPatternBytes:
		return Pattern{}, fmt.Errorf("pattern has %d bytes: expected at most %d", len(text), MaxPatternBytes)
	case !utf8.ValidString(text):
		return Pattern{}, fmt.Errorf("pattern %q is not UTF-8", text)
	case text[0] == '-':
		return Pattern{}, fmt.Errorf("pattern %q begins with a hyphen: the server would take it for an option", text)
	}
	for at, r := range text {
		if r == '"' || r == '\'' || r == '`' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return Pattern{}, fmt.Errorf("pattern %q has %q at byte %d: the server would not take it as one argument", text, r, at)
		}
	}
	return Pattern{text}, nil
}

// String gives the text.
func (p Pattern) String() string { return p.text }
