// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// names are texts that counts are kept by, of which there may be only so many: beyond that
// all others are one, nameOther. Each has a number.
type names struct {
	max int
	// numbers are by names as servers say them, texts are what they are called.
	numbers map[string]int32
	texts   []string
	// folded counts how often a name had no room.
	folded int64
	// bytes is what they take in memory, about.
	bytes int
}

// The numbers that stand for no name of a server.
const (
	// nameUnknown: the name was not told, or was forgotten.
	nameUnknown int32 = iota
	// nameHidden is the class of objects that Ruby hides.
	nameHidden
	// nameOther are those that there is no room for.
	nameOther
	firstName
)

// The names of these.
var reservedNames = [firstName]string{nameUnknown: "unknown", nameHidden: "hidden", nameOther: "other"}

// own is the text of a name that a server says. One that could be taken for a reserved
// name, or for one that was quoted, is quoted.
func own(text string) string {
	if slices.Contains(reservedNames[:], strings.Trim(text, `"`)) {
		return `"` + text + `"`
	}
	return text
}

// className is the text of a class; nil is one that Ruby hides.
func className(class []byte) string {
	if class == nil {
		return reservedNames[nameHidden]
	}
	return own(validText(class))
}

func newNames(limit int) *names {
	return &names{max: limit, numbers: map[string]int32{}, texts: append([]string(nil), reservedNames[:]...)}
}

// class is the number of a class; nil is one that Ruby hides.
func (n *names) class(name []byte) int32 {
	if name == nil {
		return nameHidden
	}
	if number, ok := n.numbers[string(name)]; ok {
		return number
	}
	return n.add(withoutAddresses(name))
}

// file is the number of a file; nil is one that is not known.
func (n *names) file(name []byte) int32 {
	if name == nil {
		return nameUnknown
	}
	if number, ok := n.numbers[string(name)]; ok {
		return number
	}
	return n.add(name)
}

// add gives a name a number, if it has none and there is room.
func (n *names) add(name []byte) int32 {
	text := validText(name)
	if number, ok := n.numbers[text]; ok {
		return number
	}
	if len(n.numbers) >= n.max {
		n.folded++
		return nameOther
	}
	number := int32(len(n.texts))
	n.texts = append(n.texts, own(text))
	n.numbers[text] = number
	n.bytes += bytesOfName + len(text)
	return number
}

// addressPrefix is what stands before the address of an object in the name of an anonymous
// class, such as #<Class:0x00007f01999002a8>.
var addressPrefix = []byte(":0x")

// withoutAddresses is the name of a class without the addresses in it: each anonymous
// class has another one.
func withoutAddresses(name []byte) []byte {
	at := bytes.Index(name, addressPrefix)
	if at < 0 {
		return name
	}
	plain := make([]byte, 0, len(name))
	for ; at >= 0; at = bytes.Index(name, addressPrefix) {
		plain, name = append(plain, name[:at]...), name[at+len(addressPrefix):]
		name = bytes.TrimLeft(name, "0123456789abcdef")
	}
	return append(plain, name...)
}

// maxTextBytes is how long a text may be that is kept: longer ones are cut.
const maxTextBytes = 1024

// validText is a text as it may stand in attributes: UTF-8, and not too long.
func validText(b []byte) string {
	if len(b) > maxTextBytes {
		cut := maxTextBytes
		for cut > maxTextBytes-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
			cut--
		}
		b = b[:cut]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
