// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ValueError says why a value cannot be sent.
type ValueError struct {
	Expected string // what can be
	Got      string
}

func (e *ValueError) Error() string { return fmt.Sprintf("expected %s, got %s", e.Expected, e.Got) }

// checkText says why text cannot be sent as what it is called: it is longer than most
// bytes, is no UTF-8, holds the NUL that ends it, or begins or ends with what agents in
// Java cut off there: blanks and control characters.
func checkText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return &ValueError{fmt.Sprintf("%s of at most %d bytes", what, most), fmt.Sprint(len(text))}
	case !utf8.ValidString(text):
		return &ValueError{what + " in UTF-8", strconv.Quote(text)}
	case strings.IndexByte(text, 0) >= 0:
		return &ValueError{what + " without a NUL", strconv.Quote(text)}
	case strings.TrimFunc(text, isCutOff) != text:
		return &ValueError{what + " without blanks and control characters at its ends, which agents cut off", strconv.Quote(text)}
	}
	return nil
}

// isCutOff says that java.lang.String.trim takes a character away from the ends.
func isCutOff(r rune) bool { return r <= ' ' }
