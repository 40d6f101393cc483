// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import "fmt"

// appendText adds a text of JSON. Bytes that are not UTF-8 stay what they are.
func appendText(to []byte, text string) []byte {
	to = append(to, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ' || c == 0x7f: // which YAML doesn't have as it is
			to = fmt.Appendf(to, "\\u%04x", c)
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
