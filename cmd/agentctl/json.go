// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// printJSON prints a value. It escapes control characters of terminals by their numbers; JSON readers decode them.
func printJSON(out io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range b.String() {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			text.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&text, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&text, `\u%04x`, r)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
