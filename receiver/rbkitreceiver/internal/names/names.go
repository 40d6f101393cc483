// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package names numbers the classes and files of a Ruby process, bounds its texts, and names
// those that have no name of their own. It knows no events.
package names

import (
	"slices"
	"strings"
)

// Names numbers the classes, or the files, of a process. All texts beyond a limit have the
// number Other.
type Names struct {
	max int
	// numbers has the number of each text as the server sends it.
	numbers map[string]int32
	// Texts are the texts as metrics show them, by number. An entry never changes.
	Texts []string
	// Folded counts how often a text had no number of its own.
	Folded int64
	// bytes is the approximate memory of all names.
	bytes int
}

// bytesOfName is the approximate memory of a name without its text.
const bytesOfName = 96

// Reserved numbers, which stand for no name of a server.
const (
	// Unknown stands for a name that the server didn't send, or that was evicted.
	Unknown int32 = iota
	// Hidden is the class of objects that Ruby hides.
	Hidden
	// Other stands for all names beyond the limit.
	Other
	// First is the number of the first name of a server.
	First
)

// reservedNames are the texts of the reserved numbers.
var reservedNames = [First]string{Unknown: "unknown", Hidden: "hidden", Other: "other"}

// quoteReserved returns the text for a name of a server. A name that equals a reserved one, or a
// quoted one, is quoted.
func quoteReserved(text string) string {
	if slices.Contains(reservedNames[:], strings.Trim(text, `"`)) {
		return `"` + text + `"`
	}
	return text
}

// ClassName returns the text of a class; nil is a class that Ruby hides.
func ClassName(class []byte) string {
	if class == nil {
		return reservedNames[Hidden]
	}
	return quoteReserved(ValidText(class))
}

// New returns no names, with room for limit names.
func New(limit int) *Names {
	return &Names{max: limit, numbers: map[string]int32{}, Texts: append([]string(nil), reservedNames[:]...)}
}

// ClassNumber returns the number of a class; nil is a class that Ruby hides.
func (n *Names) ClassNumber(name []byte) int32 {
	if name == nil {
		return Hidden
	}
	if number, ok := n.numbers[string(name)]; ok {
		return number
	}
	return n.number(WithoutAddresses(name))
}

// FileNumber returns the number of a file; nil is an unknown file.
func (n *Names) FileNumber(name []byte) int32 {
	if name == nil {
		return Unknown
	}
	if number, ok := n.numbers[string(name)]; ok {
		return number
	}
	return n.number(name)
}

// number returns the number of a name. A new name gets a number if there is room.
func (n *Names) number(name []byte) int32 {
	text := ValidText(name)
	if number, ok := n.numbers[text]; ok {
		return number
	}
	if len(n.numbers) >= n.max {
		n.Folded++
		return Other
	}
	number := int32(len(n.Texts))
	n.Texts = append(n.Texts, quoteReserved(text))
	n.numbers[text] = number
	n.bytes += bytesOfName + len(text)
	return number
}

// Memory returns the approximate memory of the names.
func (n *Names) Memory() int { return n.bytes }
