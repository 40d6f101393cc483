// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"strings"
	"unicode/utf8"
)

// functions are the functions of a tree, each once, by number. A function is there for as
// long as something refers to it. Number 0 is that of nodes which are no function.
type functions struct {
	all     []function
	numbers map[string]uint32
	free    []uint32
	// bytes is what they take, and used what those of all trees do.
	bytes int
	used  *usage
}

type function struct {
	name, file string
	line       int64
	refs       uint32
}

// bytesOfFunction is what a function takes beside its name: its entry in the slice, and
// that in the map.
const bytesOfFunction = 96

func newFunctions(used *usage) functions {
	return functions{all: make([]function, 1), numbers: map[string]uint32{}, used: used}
}

// number is that of a function of a name of at most so many bytes, which is new if it
// wasn't there; then nothing refers to it yet.
func (f *functions) number(name string, most int) uint32 {
	name = cut(name, most)
	if n, ok := f.numbers[name]; ok {
		return n
	}
	name = strings.Clone(name)
	n := uint32(len(f.all))
	if last := len(f.free) - 1; last >= 0 {
		n = f.free[last]
		f.free = f.free[:last]
	} else {
		f.all = append(f.all, function{})
	}
	f.all[n] = function{name: name}
	f.numbers[name] = n
	f.take(bytesOfFunction + len(name))
	return n
}

// place tells where a function is. What was told first stays.
func (f *functions) place(n uint32, file string, line int64, most int) {
	fn := &f.all[n]
	if file != "" && fn.file == "" {
		fn.file = strings.Clone(cut(file, most))
		f.take(len(fn.file))
	}
	if line != 0 && fn.line == 0 {
		fn.line = line
	}
}

// take counts bytes that are taken.
func (f *functions) take(bytes int) {
	f.bytes += bytes
	f.used.names += bytes
}

func (f *functions) ref(n uint32) { f.all[n].refs++ }

func (f *functions) unref(n uint32) {
	fn := &f.all[n]
	if fn.refs--; n == 0 || fn.refs > 0 {
		return
	}
	f.take(-bytesOfFunction - len(fn.name) - len(fn.file))
	delete(f.numbers, fn.name)
	*fn = function{}
	f.free = append(f.free, n)
}

// cut shortens a text to so many bytes, and not inside a letter where it is UTF-8.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if !utf8.RuneStart(text[end]) {
		end = most
	}
	return text[:end]
}
