// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"strings"
	"unicode/utf8"
)

// Name returns b as a name for a batch: valid UTF-8 of at most MaxNameBytes. It refers to no memory
// of a longer b.
func Name(b []byte) string {
	if len(b) > MaxNameBytes {
		// One byte more shows whether the cut is between characters.
		b = b[:MaxNameBytes+1]
	}
	return name(string(b))
}

// name returns s as valid UTF-8 of at most MaxNameBytes. It replaces invalid bytes first, because
// the replacement is longer.
func name(s string) string {
	if len(s) <= MaxNameBytes && utf8.ValidString(s) {
		return s
	}
	return cut(strings.ToValidUTF8(cut(s), "\uFFFD"))
}

// shortened returns the key of s in a table. It holds no memory of the part of s beyond
// MaxNameBytes.
func shortened(s string) string {
	if len(s) <= MaxNameBytes {
		return s
	}
	return strings.Clone(cut(s))
}

// cut returns the longest beginning of s that has at most MaxNameBytes and ends between characters.
func cut(s string) string {
	if len(s) <= MaxNameBytes {
		return s
	}
	n := MaxNameBytes
	for n > MaxNameBytes-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
