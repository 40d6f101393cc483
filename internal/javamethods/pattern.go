// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxPatternBytes is the maximum length of a pattern.
const MaxPatternBytes = 1024

// Pattern is a pattern of names that is one argument of a command in both protocols. It has no white space, quotes or
// control characters, and does not begin with a hyphen. The zero value is no valid pattern.
type Pattern struct{ text string }

// NewPattern returns a pattern, or an error that names the first invalid character.
func NewPattern(text string) (Pattern, error) {
	switch {
	case text == "":
		return Pattern{}, fmt.Errorf("pattern is empty: expected a pattern of names, such as com.example.*")
	case len(text) > MaxPatternBytes:
		return Pattern{}, fmt.Errorf("pattern has %d bytes: expected at most %d", len(text), MaxPatternBytes)
	case !utf8.ValidString(text):
		return Pattern{}, fmt.Errorf("pattern %q is not UTF-8", text)
	case text[0] == '-':
		return Pattern{}, fmt.Errorf("pattern %q begins with a hyphen: the server would read it as an option", text)
	}
	for at, r := range text {
		if r == '"' || r == '\'' || r == '`' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return Pattern{}, fmt.Errorf("pattern %q has %q at byte %d: the server would not read it as one argument", text, r, at)
		}
	}
	return Pattern{text}, nil
}

// String returns the text.
func (p Pattern) String() string { return p.text }
