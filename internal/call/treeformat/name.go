// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// noName replaces an empty name.
const noName = "(no name)"

// Printable returns a text with only visible characters. Everything that is no letter, mark, digit,
// punctuation, symbol or plain space of Unicode, and bytes that are not UTF-8, become escapes of Go
// strings, such as \n, \u202e and \xff. So a name cannot break a line, change the direction of the
// text around it, or be invalid UTF-8. Joiners stay, because some languages need them.
func Printable(text string) string {
	if isPrintable(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			const digits = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(digits[text[i]>>4])
			b.WriteByte(digits[text[i]&0xf])
			continue
		}
		if shown(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func isPrintable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return isPrintableUnicode(text)
		}
	}
	return true
}

func isPrintableUnicode(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !shown(r) {
			return false
		}
	}
	return true
}

// The joiners are invisible, and change the form of the letters beside them.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

func shown(r rune) bool {
	return unicode.IsPrint(r) || r == zeroWidthNonJoiner || r == zeroWidthJoiner
}

// Name returns a text as a printable name that is never empty.
func Name(text string) string {
	if text == "" {
		return noName
	}
	return Printable(text)
}

// nameOf returns the name of a node's function in all formats.
func nameOf(n *calltree.Node) string {
	if isLeftOut(n) {
		return LeftOut
	}
	name := Name(n.Function)
	if n.Mark == calltree.Truncated {
		name += " (" + n.Mark.String() + ")"
	}
	return name
}

// place and function identify frames and functions.
type (
	place struct {
		function
		line int64
	}
	function struct {
		name, file string
		truncated  bool
		leftOut    bool
	}
)

func placeOf(n *calltree.Node) place {
	return place{function{n.Function, n.File, n.Mark == calltree.Truncated, isLeftOut(n)}, n.Line}
}
