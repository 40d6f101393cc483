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

// table contains the functions of one object file. It is immutable after build.
type table struct {
	layout
	// full is set if the functions are those of .symtab, and not only the exported ones.
	full bool
	// symbols are sorted by start. Each start occurs once.
	symbols []symbol
	// names are the symbols' names, each with a zero byte after it.
	names []byte
	lines sourceLines
}

// symbol is a function in a file.
type symbol struct {
	start uint64 // address in the file
	size  uint32 // bytes, at least 1
	name  uint32 // offset of its name in names
}

// candidate is a symbol as read from the file.
type candidate struct {
	start, size uint64
	// limit is the highest possible end of a function without a size, or 0 if unknown.
	limit       uint64
	name        uint32 // offset of its name in the file's table of strings
	local, weak bool
}

// bytes returns the memory of the table.
func (t *table) bytes() int64 { return tableBytes(len(t.symbols), len(t.names)) + t.lines.bytes }

// tableBytes returns the memory of a table with this number of symbols and bytes of names.
func tableBytes(symbols, names int) int64 {
	return int64(unsafe.Sizeof(table{})) + int64(symbols)*int64(unsafe.Sizeof(symbol{})) + int64(names)
}

// build sorts the candidates and adds one for each address, with its name. names ends with a zero byte. Candidates
// with an empty name, or one outside names, are omitted. build fails if the table would use more than most bytes, or
// if reserve fails for them.
func (t *table) build(candidates []candidate, names []byte, most int64, reserve func(bytes int64) error) error {
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
		return uint64(c.name) >= uint64(len(names)) || names[c.name] == 0
	})
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.start, b.start), compareAliases(a, b, names))
	})
	candidates = slices.CompactFunc(candidates, func(a, b candidate) bool { return a.start == b.start })

	// Names may overlap in the file. So together they can be longer than their section.
	total := 0
	for _, c := range candidates {
		total += len(nameAt(names, c.name)) + 1
	}
	size := tableBytes(len(candidates), total)
	if size > most {
		return fmt.Errorf("expected a table of functions of at most %d bytes, got %d", most, size)
	}
	if err := reserve(size); err != nil {
		return err
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

// compareAliases orders the symbols of one address, the best first: global symbols, names with fewer leading
// underscores, symbols that are not weak, symbols with a size, short names. The alphabet decides last, so that the
// choice is always the same.
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

// underscores returns the number of leading underscores.
func underscores(name []byte) int { return len(name) - len(bytes.TrimLeft(name, "_")) }

// sizeUntilNext returns the size of a function without one, which occurs in assembler: up to the next function, or
// the end of its section.
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

// maxSymbolBytes is the maximum length of a symbol's name. Longer names are truncated.
const maxSymbolBytes = 16 << 10

// nameAt returns the name at an offset. names ends with a zero byte.
func nameAt(names []byte, at uint32) []byte {
	name := names[at:]
	name = name[:min(len(name), maxSymbolBytes)]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		return name[:end]
	}
	return name
}

// maxNesting is the maximum number of functions that end before an address and are skipped in the search for an
// earlier one that contains it. Functions overlap only in assembler.
const maxNesting = 16

// around returns the index of the function that contains an address of the file, or -1.
func (t *table) around(addr uint64) int {
	if t.thumb {
		addr &^= 1
	}
	i, exact := slices.BinarySearchFunc(t.symbols, addr, func(s symbol, addr uint64) int { return cmp.Compare(s.start, addr) })
	if exact {
		return i
	}
	for n := i - 1; n >= 0 && n >= i-maxNesting; n-- {
		if s := t.symbols[n]; addr-s.start < uint64(s.size) {
			return n
		}
	}
	return -1
}

// pageSize is the smallest page size of all systems.
const pageSize = 4096

// fits reports whether the object can be at base. Fixed addresses must begin at base.
func (l layout) fits(base uint64) bool {
	return !l.fixed || base&^(pageSize-1) == l.first&^(pageSize-1)
}

// fileAddress returns the address in the file for an address of a process with the object at base.
//
// base is either the begin of the first loadable segment, from tracers that read program headers (its address in the
// file plus the load bias), or the begin of its page, as in /proc/PID/maps. The load bias is a multiple of the page
// size, so rounding up returns it in both cases.
func (l layout) fileAddress(base, addr uint64) uint64 {
	if l.fixed {
		return addr
	}
	return addr - roundUp(base-l.first, pageSize)
}
