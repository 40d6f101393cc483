// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"slices"
	"strings"
)

// names numbers texts by which the receiver counts. Texts beyond a limit all have the
// number nameOther.
type names struct {
	max int
	// numbers are by texts as servers send them; texts are as metrics show them.
	numbers map[string]int32
	texts   []string
	// folded counts how often a text had no number of its own.
	folded int64
	// bytes is the memory of all names, about.
	bytes int
}

// bytesOfName is the memory of a name beside its text, about.
const bytesOfName = 96

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

// own returns the text for a name of a server. A name that equals a reserved one, or a
// quoted one, is quoted.
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
	return n.number(withoutAddresses(name))
}

// file is the number of a file; nil is one that is not known.
func (n *names) file(name []byte) int32 {
	if name == nil {
		return nameUnknown
	}
	if number, ok := n.numbers[string(name)]; ok {
		return number
	}
	return n.number(name)
}

// number returns the number of a name, and gives it one if there is room.
func (n *names) number(name []byte) int32 {
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

// held returns how many bytes the names take, about.
func (n *names) held() int { return n.bytes }
