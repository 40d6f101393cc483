// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ValueError means that a value cannot be sent.
type ValueError struct {
	Expected string // the allowed values
	Got      string
}

func (e *ValueError) Error() string { return fmt.Sprintf("expected %s, got %s", e.Expected, e.Got) }

// checkText checks that text can be sent. name is its name for errors. It fails for texts of more than most bytes,
// that are not UTF-8, contain a NUL, or begin or end with blanks or control characters, which agents in Java cut off.
func checkText(name, text string, most int) error {
	switch {
	case len(text) > most:
		return &ValueError{fmt.Sprintf("%s of at most %d bytes", name, most), fmt.Sprint(len(text))}
	case !utf8.ValidString(text):
		return &ValueError{name + " in UTF-8", strconv.Quote(text)}
	case strings.IndexByte(text, 0) >= 0:
		return &ValueError{name + " without a NUL", strconv.Quote(text)}
	case strings.TrimFunc(text, isCutOff) != text:
		return &ValueError{name + " without blanks and control characters at its ends, which agents cut off", strconv.Quote(text)}
	}
	return nil
}

// isCutOff reports whether java.lang.String.trim removes a character at the ends.
func isCutOff(r rune) bool { return r <= ' ' }
