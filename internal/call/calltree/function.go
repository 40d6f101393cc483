// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"hash/maphash"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// functions are the functions of a tree by number. A function is there while something refers
// to it. Number 0 is that of nodes without a function.
type functions struct {
	all  []function
	free []uint32
	// byName finds the functions with references, and those that will have some soon.
	byName index
	seed   maphash.Seed
	// bytes is the memory of the functions, and used has that of all trees.
	bytes int
	used  *usage
	// removals changes when a number gets another meaning, or none.
	removals uint64
}

type function struct {
	name, file string
	line       int64
	refs       uint32
	hash       uint32 // of the name
}

// usage is the contents of all trees of a store.
type usage struct {
	// nodes is the number of nodes in use: neither free, nor merged, nor tops. names is the number of
	// bytes of functions' names.
	nodes, names int
}

// bytesOfFunction is the memory of a function beside its name: its entry in the slice, and that
// in the index.
const bytesOfFunction = 72

func newFunctions(used *usage) functions {
	return functions{all: make([]function, 1), seed: maphash.MakeSeed(), used: used}
}

// number is the number of the function of a name, cut to most bytes. A new function has no
// references yet.
func (f *functions) number(name string, most int) uint32 {
	name = Cut(name, most)
	hash := uint32(maphash.String(f.seed, name))
	if n := f.find(hash, name); n != 0 {
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
	f.all[n] = function{name: name, hash: hash}
	f.byName.add(hash, n, f)
	f.charge(bytesOfFunction + len(name))
	return n
}

// find is the number of the function of a name, or 0.
func (f *functions) find(hash uint32, name string) uint32 {
	n, at := f.byName.next(hash, 0)
	for n != 0 && f.all[n].name != name {
		n, at = f.byName.next(hash, at)
	}
	return n
}

func (f *functions) hashOf(n uint32) uint32 { return f.all[n].hash }

// place sets file and line of a function, unless they are set.
func (f *functions) place(n uint32, file string, line int64, most int) {
	fn := &f.all[n]
	if file != "" && fn.file == "" {
		fn.file = strings.Clone(Cut(file, most))
		f.charge(len(fn.file))
	}
	if line != 0 && fn.line == 0 {
		fn.line = line
	}
}

// charge counts bytes that functions take. A negative number is memory freed.
func (f *functions) charge(bytes int) {
	f.bytes += bytes
	f.used.names += bytes
}

func (f *functions) ref(n uint32) { f.all[n].refs++ }

func (f *functions) unref(n uint32) {
	fn := &f.all[n]
	if fn.refs--; n == 0 || fn.refs > 0 {
		return
	}
	f.removals++
	f.charge(-bytesOfFunction - len(fn.name) - len(fn.file))
	f.byName.remove(fn.hash, n, f)
	*fn = function{}
	f.free = append(f.free, n)
}

// compact keeps only functions with references. It returns their new numbers.
func (f *functions) compact() (numbers []uint32) {
	f.removals++
	numbers = make([]uint32, len(f.all))
	used := make([]function, 1, withSpareRoom(len(f.all)-len(f.free)))
	used[0] = f.all[0]
	for i, fn := range f.all {
		if i > 0 && fn.refs > 0 {
			numbers[i] = uint32(len(used))
			used = append(used, fn)
		}
	}
	f.all, f.free, f.byName = used, nil, index{}
	for n := range used[1:] {
		f.byName.add(used[n+1].hash, uint32(n)+1, f)
	}
	return numbers
}

// textBytes is the memory of a text beside its length, since sizes are rounded up.
const textBytes = 8

// memory is the memory of the functions.
func (f *functions) memory() int64 {
	return int64(cap(f.all))*int64(unsafe.Sizeof(function{})) + int64(cap(f.free))*int64(unsafe.Sizeof(uint32(0))) + f.byName.bytes() +
		int64(f.bytes) - int64(f.byName.used)*(bytesOfFunction-textBytes)
}

// Cut shortens a text to most bytes, and not inside a UTF-8 letter.
func Cut(text string, most int) string {
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
