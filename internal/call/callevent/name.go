// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"strings"
	"unicode/utf8"
)

// Name is b as a name or a text can stand in a batch: valid UTF-8 of at most
// MaxNameBytes. Nothing of what is longer is kept.
func Name(b []byte) string {
	if len(b) > MaxNameBytes {
		// One byte more says whether the cut is between characters.
		b = b[:MaxNameBytes+1]
	}
	return name(string(b))
}

// name is s as it can stand in a batch: valid UTF-8 of at most MaxNameBytes.
// What is no UTF-8 is replaced first, because the replacement is longer.
func name(s string) string {
	if len(s) <= MaxNameBytes && utf8.ValidString(s) {
		return s
	}
	return cut(strings.ToValidUTF8(cut(s), "\uFFFD"))
}

// kept is what a table remembers s by: of what is too long the rest is not kept.
func kept(s string) string {
	if len(s) <= MaxNameBytes {
		return s
	}
	return strings.Clone(cut(s))
}

// cut is the beginning of s of at most MaxNameBytes that ends between characters.
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
