// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import "fmt"

// appendText adds a JSON string. It copies bytes that are not UTF-8 unchanged.
func appendText(to []byte, text string) []byte {
	to = append(to, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ' || c == 0x7f: // YAML does not allow them unescaped
			to = fmt.Appendf(to, "\\u%04x", c)
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
