// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cases maps addresses of a table to function names, "" for no function.
type cases map[uint64]string

func (c cases) check(t *testing.T, table *table) {
	t.Helper()
	for addr, want := range c {
		assert.Equal(t, want, string(table.function(addr)), "0x%x", addr)
	}
}

func TestFunctionsOfEveryKindOfFile(t *testing.T) {
	for _, class := range []elf.Class{elf.ELFCLASS32, elf.ELFCLASS64} {
		for _, data := range []elf.Data{elf.ELFDATA2LSB, elf.ELFDATA2MSB} {
			for _, typ := range []elf.Type{elf.ET_DYN, elf.ET_EXEC} {
				t.Run(class.String()+" "+data.String()+" "+typ.String(), func(t *testing.T) {
					m := image{
						class: class, data: data, typ: typ, first: 0x8000, buildID: "0123456789abcdefghij",
						symbols: []imageSymbol{
							{name: "second", start: 0x8120, size: 0x10},
							{name: "first", start: 0x8100, size: 0x20},
							{name: "variable", start: 0x8110, size: 4, typ: elf.STT_OBJECT},
							{name: "elsewhere", start: 0x8130, size: 4, section: undefined},
							{name: "chosen_at_start", start: 0x8140, size: 8, typ: elf.STT_GNU_IFUNC},
							{name: "", start: 0x8150, size: 8},
						},
					}
					table := m.read(t)
					assert.True(t, table.full)
					assert.Equal(t, layout{fixed: typ == elf.ET_EXEC, first: 0x8000, memorySize: 0x1000}, table.layout)
					cases{
						0x80ff: "", 0x8100: "first", 0x811f: "first", 0x8120: "second", 0x812f: "second", 0x8130: "",
						0x8140: "chosen_at_start", 0x8150: "", 0: "", math.MaxUint64: "",
					}.check(t, table)
				})
			}
		}
	}
}

func TestExportedFunctionsAreUsedIfThereIsNothingElse(t *testing.T) {
	exported := []imageSymbol{{name: "seen", start: 0x100, size: 0x10, bind: elf.STB_GLOBAL}}
	data := []imageSymbol{{name: "variable", start: 0x100, size: 0x10, typ: elf.STT_OBJECT}}

	stripped := image{exported: exported}.read(t)
	assert.False(t, stripped.full)
	cases{0x100: "seen"}.check(t, stripped)

	assert.False(t, image{symbols: data, exported: exported}.read(t).full, "a .symtab without functions is none")
	full := image{exported: exported, symbols: []imageSymbol{{name: "all", start: 0x100, size: 0x10}}}.read(t)
	assert.True(t, full.full)
	cases{0x100: "all"}.check(t, full)

	_, err := image{symbols: data}.tryRead()
	assert.EqualError(t, err, "expected a table of symbols with functions, got none: the file is stripped")
}

func TestOneOfSeveralNamesIsChosen(t *testing.T) {
	named := func(name string, bind elf.SymBind) imageSymbol {
		return imageSymbol{name: name, start: 0x100, size: 0x10, bind: bind}
	}
	for name, c := range map[string]struct {
		names []imageSymbol
		want  string
	}{
		"a global before a local":          {[]imageSymbol{named("a", elf.STB_LOCAL), named("__global", elf.STB_GLOBAL)}, "__global"},
		"fewer underscores, weak or not":   {[]imageSymbol{named("_IO_puts", elf.STB_GLOBAL), named("puts", elf.STB_WEAK)}, "puts"},
		"a global before a weak":           {[]imageSymbol{named("a", elf.STB_WEAK), named("longer", elf.STB_GLOBAL)}, "longer"},
		"the shorter":                      {[]imageSymbol{named("longer", elf.STB_GLOBAL), named("short", elf.STB_GLOBAL)}, "short"},
		"the first in the alphabet":        {[]imageSymbol{named("_ZN1AC2Ev", elf.STB_WEAK), named("_ZN1AC1Ev", elf.STB_WEAK)}, "_ZN1AC1Ev"},
		"one with a size before a shorter": {[]imageSymbol{{name: "a", start: 0x100}, named("sized", elf.STB_LOCAL)}, "sized"},
		"any order in the file":            {[]imageSymbol{named("puts", elf.STB_WEAK), named("_IO_puts", elf.STB_GLOBAL)}, "puts"},
	} {
		t.Run(name, func(t *testing.T) {
			table := image{symbols: c.names}.read(t)
			require.Len(t, table.symbols, 1)
			cases{0x100: c.want, 0x10f: c.want, 0x110: ""}.check(t, table)
		})
	}
}

func TestFunctionsWithoutASizeEndWithTheNextOrTheirSection(t *testing.T) {
	table := image{size: 0x200, symbols: []imageSymbol{
		{name: "start", start: 0x100},
		{name: "main", start: 0x120, size: 8},
		{name: "last", start: 0x130},
		{name: "absolute", start: 0x1000, section: elf.SHN_ABS},
	}}.read(t)
	cases{
		0x11f: "start", 0x120: "main", 0x128: "", 0x130: "last", 0x1ff: "last", 0x200: "", 0x1000: "absolute", 0x1001: "",
	}.check(t, table)
}

func TestFunctionsInsideOthers(t *testing.T) {
	table := image{symbols: []imageSymbol{
		{name: "outer", start: 0x100, size: 0x100},
		{name: "inner", start: 0x120, size: 0x10},
		{name: "deeper", start: 0x124, size: 4},
	}}.read(t)
	cases{0x110: "outer", 0x120: "inner", 0x124: "deeper", 0x128: "inner", 0x130: "outer", 0x1ff: "outer", 0x200: ""}.check(t, table)
}

func TestThumbFunctions(t *testing.T) {
	symbols := []imageSymbol{{name: "thumb", start: 0x101, size: 4}}
	cases{0x100: "thumb", 0x101: "thumb", 0x103: "thumb", 0x104: ""}.check(t,
		image{class: elf.ELFCLASS32, machine: elf.EM_ARM, symbols: symbols}.read(t))
	cases{0x100: "", 0x101: "thumb", 0x104: "thumb"}.check(t,
		image{class: elf.ELFCLASS32, machine: elf.EM_386, symbols: symbols}.read(t))
}

func TestAddressesOfTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		layout           layout
		base, addr, want uint64
	}{
		"a shared object that begins at 0": {layout{}, 0x7f0000000000, 0x7f0000001234, 0x1234},
		"one that begins later":            {layout{first: 0x10000}, 0x7f0000010000, 0x7f0000011234, 0x11234},
		"one that begins inside a page":    {layout{first: 0x10040}, 0x7f0000010040, 0x7f0000011234, 0x11234},
		"the same, reported by its page":   {layout{first: 0x10040}, 0x7f0000010000, 0x7f0000011234, 0x11234},
		"one prelinked to high addresses":  {layout{first: 0x3000000000}, 0x1000, 0x1234, 0x3000000234},
		"an executable with fixed ones":    {layout{fixed: true, first: 0x400000}, 0x400000, 0x401234, 0x401234},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, c.layout.fileAddress(c.base, c.addr))
			assert.True(t, c.layout.fits(c.base))
		})
	}
	assert.False(t, layout{fixed: true, first: 0x400000}.fits(0x7f0000000000), "fixed addresses are nowhere else")
}

func TestNamesThatOverlapAreBounded(t *testing.T) {
	// 30,000 symbols have names that are suffixes of one name: 10 MB in a file of 800 KB.
	m := image{symbols: []imageSymbol{{name: strings.Repeat("x", 30_000), start: 0x100, size: 1}}}
	var candidates []candidate
	for i := range 30_000 {
		candidates = append(candidates, candidate{start: uint64(i), size: 1, name: uint32(1 + i)})
	}
	_, names := m.symbolTable(m.symbols)
	var table table
	require.ErrorContains(t, table.build(candidates, names, 1<<20, unlimited), "expected a table of functions of at most 1048576 bytes, got ")
	require.NoError(t, table.build(candidates, names, 1<<30, unlimited))
	assert.Equal(t, bytes.Repeat([]byte("x"), maxSymbolBytes), table.function(0), "a longer name is cut")
	assert.Equal(t, []byte("x"), table.function(29_999))
	assert.Equal(t, tableBytes(30_000, len(table.names)), table.bytes())
}

// function returns the name of the function that contains an address of the file, or nil.
func (t *table) function(addr uint64) []byte {
	if i := t.around(addr); i >= 0 {
		s := t.symbols[i]
		return nameAt(t.names, s.name)
	}
	return nil
}

// unlimited reserves any memory.
func unlimited(int64) error { return nil }
