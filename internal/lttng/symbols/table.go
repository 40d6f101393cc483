// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// table is the functions of one object file. It doesn't change once it is built.
type table struct {
	layout
	// full: the functions are those of .symtab, not only those that are exported.
	full bool
	// symbols are sorted by start, each of which is there once.
	symbols []symbol
	// names are the symbols' names, each with a zero byte behind it.
	names []byte
}

// symbol is a function in a file.
type symbol struct {
	start uint64 // address as the file says
	size  uint32 // bytes, at least 1
	name  uint32 // where its name begins in names
}

// candidate is a symbol as it was read.
type candidate struct {
	start, size uint64
	// limit is where a function without a size ends at the latest; 0: not known.
	limit       uint64
	name        uint32 // where its name begins in the file's table of strings
	local, weak bool
}

// bytes is the memory that the table takes.
func (t *table) bytes() int64 { return tableBytes(len(t.symbols), len(t.names)) }

// tableBytes is the memory of a table of so many symbols, with names of so many
// bytes.
func tableBytes(symbols, names int) int64 {
	return int64(unsafe.Sizeof(table{})) + int64(symbols)*int64(unsafe.Sizeof(symbol{})) + int64(names)
}

// build sorts the candidates and takes one for each address, with its name. names
// ends with a zero byte; candidates whose names are not in it, or are empty, are
// left out. The error says that the table would take more than most bytes.
func (t *table) build(candidates []candidate, names []byte, most int64) error {
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
		return uint64(c.name) >= uint64(len(names)) || names[c.name] == 0
	})
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.start, b.start), compareAliases(a, b, names))
	})
	candidates = slices.CompactFunc(candidates, func(a, b candidate) bool { return a.start == b.start })

	// Names may overlap in the file: together they can be longer than what they are
	// taken from.
	total := 0
	for _, c := range candidates {
		total += len(nameAt(names, c.name)) + 1
	}
	if size := tableBytes(len(candidates), total); size > most {
		return fmt.Errorf("expected a table of functions of at most %d bytes, got %d", most, size)
	}
	t.symbols = make([]symbol, 0, len(candidates))
	t.names = make([]byte, 0, total)
	for i, c := range candidates {
		if c.size == 0 {
			c.size = sizeUntilNext(candidates, i)
		}
		t.symbols = append(t.symbols, symbol{
			start: c.start,
			size:  uint32(min(c.size, math.MaxUint32)),
			name:  uint32(len(t.names)),
		})
		t.names = append(append(t.names, nameAt(names, c.name)...), 0)
	}
	return nil
}

// compareAliases orders the symbols of one address, the best first: what other
// objects can see, what looks least like an implementation's own, what was not
// meant to be replaced, what is short, and at last by name, so that the choice is
// always the same.
func compareAliases(a, b candidate, names []byte) int {
	nameA, nameB := nameAt(names, a.name), nameAt(names, b.name)
	return cmp.Or(
		compareBool(a.local, b.local),
		cmp.Compare(underscores(nameA), underscores(nameB)),
		compareBool(a.weak, b.weak),
		compareBool(a.size == 0, b.size == 0),
		cmp.Compare(len(nameA), len(nameB)),
		bytes.Compare(nameA, nameB),
	)
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// underscores is how many a name begins with.
func underscores(name []byte) int { return len(name) - len(bytes.TrimLeft(name, "_")) }

// sizeUntilNext is the size of a function that says none, as those in assembler
// often do: up to the next one, or the end of its section.
func sizeUntilNext(candidates []candidate, i int) uint64 {
	c := candidates[i]
	end := c.limit
	if i+1 < len(candidates) && (end <= c.start || candidates[i+1].start < end) {
		end = candidates[i+1].start
	}
	if end <= c.start {
		return 1
	}
	return end - c.start
}

// maxSymbolBytes is the longest name of a symbol; longer ones are cut.
const maxSymbolBytes = 16 << 10

// nameAt is the name that begins there; names ends with a zero byte.
func nameAt(names []byte, at uint32) []byte {
	name := names[at:]
	name = name[:min(len(name), maxSymbolBytes)]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		return name[:end]
	}
	return name
}

// maxNesting is how many functions that end before an address are passed over to
// find one that begins earlier and holds it: functions don't overlap but in
// assembler.
const maxNesting = 16

// function returns the name of the function that covers an address of the file;
// nil: none does. The name is part of the table.
func (t *table) function(addr uint64) []byte {
	if t.thumb {
		addr &^= 1
	}
	i, exact := slices.BinarySearchFunc(t.symbols, addr, func(s symbol, addr uint64) int { return cmp.Compare(s.start, addr) })
	if exact {
		return nameAt(t.names, t.symbols[i].name)
	}
	for n := i - 1; n >= 0 && n >= i-maxNesting; n-- {
		if s := t.symbols[n]; addr-s.start < uint64(s.size) {
			return nameAt(t.names, s.name)
		}
	}
	return nil
}

// pageSize is the smallest one of the systems that there are.
const pageSize = 4096

// fits reports whether the object can lie at base: where its addresses are fixed
// that has to be the first.
func (l layout) fits(base uint64) bool {
	return !l.fixed || base&^(pageSize-1) == l.first&^(pageSize-1)
}

// fileAddress is what the file calls the address addr of a process where the object
// lies at base.
//
// base is where the first loadable segment begins, as tracers that look at program
// headers say (its address in the file plus the load bias), or the beginning of its
// page, as /proc/PID/maps says. The load bias is a multiple of the page size, so
// rounding up gives it in both cases.
func (l layout) fileAddress(base, addr uint64) uint64 {
	if l.fixed {
		return addr
	}
	return addr - roundUp(base-l.first, pageSize)
}
