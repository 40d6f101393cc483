// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import (
	"strings"
	"unicode/utf8"
)

// Limits of all interned names, and of one name.
const (
	maxNamesBytes = 4 << 20
	maxNameBytes  = 1 << 10
	// bytesOfName is an upper estimate of the memory of an entry beside its text.
	bytesOfName = 64
)

// Names interns names, so that a repeated name costs no memory. When they are too many, all are dropped.
type Names struct {
	byText map[string]string
	bytes  int
}

// Intern returns a text as valid UTF-8.
func (n *Names) Intern(text []byte) string {
	if name, known := n.byText[string(text)]; known {
		return name
	}
	if len(text) > maxNameBytes || !utf8.Valid(text) {
		return ValidText(text)
	}
	if n.byText == nil || n.bytes > maxNamesBytes {
		n.byText, n.bytes = map[string]string{}, 0
	}
	name := string(text)
	n.byText[name] = name
	n.bytes += len(name) + bytesOfName
	return name
}

// Bytes returns an upper estimate of the memory of the names.
func (n *Names) Bytes() int { return n.bytes }

// ValidText returns a text with invalid UTF-8 replaced.
func ValidText(text []byte) string { return strings.ToValidUTF8(string(text), string(utf8.RuneError)) }
