// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// checkText says why text cannot be sent as what it is called: it is longer than most
// bytes, is no UTF-8, holds the NUL that ends it, or begins or ends with what agents in
// Java cut off there: blanks and control characters.
func checkText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return fmt.Errorf("expected %s of at most %d bytes, got %d", what, most, len(text))
	case !utf8.ValidString(text):
		return fmt.Errorf("expected %s in UTF-8, got %q", what, text)
	case strings.IndexByte(text, 0) >= 0:
		return fmt.Errorf("expected %s without a NUL, got %q", what, text)
	case strings.TrimFunc(text, isCutOff) != text:
		return fmt.Errorf("expected %s without blanks and control characters at its ends, which agents cut off, got %q", what, text)
	}
	return nil
}

// isCutOff says that java.lang.String.trim takes a character away from the ends.
func isCutOff(r rune) bool { return r <= ' ' }
