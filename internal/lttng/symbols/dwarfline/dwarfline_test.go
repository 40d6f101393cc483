// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writer writes values of DWARF.
type writer struct {
	b     []byte
	order binary.AppendByteOrder
	is64  bool
}

func (w *writer) u8(values ...uint8) { w.b = append(w.b, values...) }
func (w *writer) u16(v uint16)       { w.b = w.order.AppendUint16(w.b, v) }
func (w *writer) text(s string)      { w.b = append(append(w.b, s...), 0) }

func (w *writer) uleb(values ...uint64) {
	for _, v := range values {
		w.b = binary.AppendUvarint(w.b, v)
	}
}

func (w *writer) offset(v uint64) {
	if w.is64 {
		w.b = w.order.AppendUint64(w.b, v)
		return
	}
	w.b = w.order.AppendUint32(w.b, uint32(v))
}

// unit writes a length and the content that it counts.
func (w *writer) unit(content func(*writer)) {
	inner := writer{order: w.order, is64: w.is64}
	content(&inner)
	if w.is64 {
		w.b = w.order.AppendUint32(w.b, 0xffffffff)
	}
	w.offset(uint64(len(inner.b)))
	w.b = append(w.b, inner.b...)
}

// lineTable describes a program of .debug_line.
type lineTable struct {
	version uint16
	is64    bool
	order   binary.AppendByteOrder // default little endian
	// lists are the directories and files, in the form of the version. By default they are those of files.
	lists func(*writer)
	// opcodes are those of the program. By default the program has one row.
	opcodes func(*writer)
	// header changes the fixed part of the header: minimum instruction length, line base, line range, opcode base.
	header func(fields *[4]uint8)
}

// files are a.c in the directory of the compilation, b.c in the relative directory lib, and c.h in /usr/include.
func files(version uint16) func(*writer) {
	return func(w *writer) {
		if version < 5 {
			for _, directory := range []string{"lib", "/usr/include", ""} {
				w.text(directory)
			}
			for i, name := range []string{"a.c", "b.c", "c.h"} {
				w.text(name)
				w.uleb(uint64(i), 0, 0)
			}
			w.u8(0)
			return
		}
		w.u8(1)
		w.uleb(lnctPath, formString)
		w.uleb(3)
		for _, directory := range []string{"/src", "lib", "/usr/include"} {
			w.text(directory)
		}
		w.u8(3)
		w.uleb(lnctPath, formString, lnctDirectoryIndex, formUdata, 5, formData16) // 5: MD5
		w.uleb(4)
		for i, name := range []string{"a.c", "a.c", "b.c", "c.h"} {
			w.text(name)
			w.uleb(uint64(max(i-1, 0)))
			w.b = append(w.b, make([]byte, 16)...)
		}
	}
}

// row writes a row of the table.
func (w *writer) row(address, file, line uint64) {
	w.u8(lnsExtended, 9, lneSetAddress)
	w.b = w.order.AppendUint64(w.b, address)
	w.u8(lnsSetFile)
	w.uleb(file)
	w.u8(lnsAdvanceLine)
	w.uleb(line - 1) // positive, and smaller than 64 in this form
	w.u8(lnsCopy)
}

// end ends a sequence.
func (w *writer) end() { w.u8(lnsExtended, 1, lneEndSequence) }

func (l lineTable) bytes() []byte {
	if l.order == nil {
		l.order = binary.LittleEndian
	}
	if l.version == 0 {
		l.version = 5
	}
	if l.lists == nil {
		l.lists = files(l.version)
	}
	if l.opcodes == nil {
		l.opcodes = func(w *writer) { w.row(0x1000, 1, 10); w.end() }
	}
	fields := [4]uint8{1, 0xfb, 14, 13} // as GCC
	if l.header != nil {
		l.header(&fields)
	}
	whole := writer{order: l.order, is64: l.is64}
	whole.unit(func(w *writer) {
		w.u16(l.version)
		if l.version >= 5 {
			w.u8(8, 0)
		}
		rest := writer{order: l.order, is64: l.is64}
		rest.u8(fields[0])
		if l.version >= 4 {
			rest.u8(1)
		}
		rest.u8(1, fields[1], fields[2], fields[3])
		if fields[3] > 0 {
			rest.b = append(rest.b, []byte{0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}[:min(12, fields[3]-1)]...)
		}
		l.lists(&rest)
		w.offset(uint64(len(rest.b)))
		w.b = append(w.b, rest.b...)
		l.opcodes(w)
	})
	return whole.b
}

// section returns a section that is not compressed.
func section(content []byte) Section {
	if content == nil {
		return Section{}
	}
	return Section{Open: func() io.Reader { return bytes.NewReader(content) }, At: bytes.NewReader(content), Size: int64(len(content))}
}

// inflated returns a section that can only be read forwards.
func inflated(content []byte) Section {
	s := section(content)
	s.At = nil
	return s
}

// read returns the places of starts, as file:line or "".
func read(t testing.TB, s Sections, starts ...uint64) ([]string, error) {
	t.Helper()
	if s.Order == nil {
		s.Order = binary.LittleEndian
	}
	s.AddressSize = 8
	places, err := Read(s, starts, Limits{MaxBytes: 1 << 20})
	require.Len(t, places.Of, len(starts))
	var shown []string
	for _, p := range places.Of {
		if p == (Place{}) {
			shown = append(shown, "")
			continue
		}
		if p.IsAmbiguous() {
			shown = append(shown, "ambiguous")
			continue
		}
		require.NotZero(t, p.Line)
		shown = append(shown, fmt.Sprintf("%s:%d", places.Files[p.File-1], p.Line))
	}
	return shown, err
}

// A linker that folds identical functions leaves the rows of each. Units with the same inline function have equal rows.
func TestAFunctionWithDifferentLinesInSeveralSequencesHasNoPlace(t *testing.T) {
	for name, c := range map[string]struct {
		second uint64 // line
		want   string
	}{
		"another line":  {20, "ambiguous"},
		"the same line": {10, "/src/a.c:10"},
	} {
		t.Run(name, func(t *testing.T) {
			first := lineTable{opcodes: func(w *writer) { w.row(0x1000, 1, 10); w.end() }}
			second := lineTable{opcodes: func(w *writer) {
				w.row(0x1000, 2, c.second)
				w.row(0x1000, 2, 1)
				w.end()
				w.row(0x2000, 1, 30)
			}}
			for _, tables := range [][]byte{
				slices.Concat(first.bytes(), second.bytes()),
				slices.Concat(first.bytes(), second.bytes(), first.bytes(), first.bytes()),
			} {
				got, err := read(t, Sections{Line: section(tables)}, 0x1000, 0x2000)
				require.NoError(t, err)
				assert.Equal(t, []string{c.want, "/src/a.c:30"}, got)
			}
		})
	}
}

func TestOnlyTheFirstRowAtAnAddressIsThePlaceOfAFunction(t *testing.T) {
	for name, c := range map[string]struct {
		opcodes func(*writer)
		want    []string // of 0x1000, 0x1010 and 0x2000
	}{
		"each in a sequence": {func(w *writer) {
			w.row(0x1000, 1, 10)
			w.end()
			w.row(0x2000, 3, 30)
			w.end()
			w.row(0x1010, 2, 20)
			w.end()
		}, []string{"/src/a.c:10", "/src/lib/b.c:20", "/usr/include/c.h:30"}},
		"two rows at an address": {func(w *writer) {
			w.row(0x1000, 1, 10)
			w.row(0x1000, 2, 20)
		}, []string{"/src/a.c:10", "", ""}},
		"a row without a line before": {func(w *writer) {
			w.row(0x1000, 1, 1)
			w.end()
			w.u8(lnsExtended, 9, lneSetAddress)
			w.b = w.order.AppendUint64(w.b, 0x2000)
			w.u8(lnsAdvanceLine, 0x7f, lnsCopy) // line 0
			w.u8(lnsAdvanceLine, 5, lnsCopy)
		}, []string{"/src/a.c:1", "", "/src/a.c:5"}},
		"only a row without a line": {func(w *writer) {
			w.row(0x1000, 1, 1)
			w.u8(lnsAdvanceLine, 0x7f, lnsAdvancePC, 0x10, lnsCopy) // line 0
		}, []string{"/src/a.c:1", "", ""}},
		"no row at the first address": {func(w *writer) {
			w.row(0x0fff, 1, 10)
			w.row(0x1001, 1, 11)
		}, []string{"", "", ""}},
		"the end of a sequence is no row": {func(w *writer) {
			w.row(0x0ff0, 1, 10)
			w.u8(lnsAdvancePC)
			w.uleb(0x10)
			w.end()
		}, []string{"", "", ""}},
		"an unknown file": {func(w *writer) { w.row(0x1000, 9, 10) }, []string{"", "", ""}},
		"special opcodes": {func(w *writer) {
			w.row(0x1000, 1, 10)
			w.u8(lnsConstAddPC) // 17
			w.u8(13 + 5 + 14)   // address + 1, line + 0
			w.u8(lnsFixedAdvancePC)
			w.u16(0x2000 - 0x1012)
			w.u8(13 + 5 + 3) // line + 3
		}, []string{"/src/a.c:10", "", "/src/a.c:13"}},
		"code that the linker removed, at 0": {func(w *writer) {
			w.row(0, 1, 10)
			w.row(0x1000, 1, 11)
		}, []string{"", "", ""}},
		"code that the linker removed, at the end": {func(w *writer) {
			w.row(1<<64-1, 1, 10)
			w.row(0x1000, 1, 11)
			w.end()
			w.row(0x1010, 1, 12)
		}, []string{"", "/src/a.c:12", ""}},
		"arguments of unknown opcodes": {func(w *writer) {
			w.u8(12)
			w.uleb(1 << 40)
			w.u8(lnsExtended, 3, 0x80, 1, 2)
			w.u8(lnsNegateStmt, lnsSetBasicBlock, 10, 11, lnsSetColumn, 7)
			w.row(0x1000, 1, 10)
		}, []string{"/src/a.c:10", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, Sections{Line: section(lineTable{opcodes: c.opcodes}.bytes())}, 0x1000, 0x1010, 0x2000)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

// debugInfo returns .debug_info and .debug_abbrev of a unit without children.
func debugInfo(version uint16, is64 bool, attributes []uint64, values func(*writer)) (info, abbrev []byte) {
	w := writer{order: binary.LittleEndian, is64: is64}
	w.unit(func(w *writer) {
		w.u16(version)
		if version >= 5 {
			w.u8(unitCompile, 8)
		}
		w.offset(1) // of the table of abbreviations
		if version < 5 {
			w.u8(8)
		}
		w.uleb(7)
		values(w)
		w.b = append(w.b, make([]byte, 20_000)...) // other entries
	})
	a := writer{}
	a.u8(0)
	a.uleb(3, 0x2e)
	a.u8(1)
	a.uleb(3, formString, 0x3e, formImplicitConst, 0x7f, 0, 0) // -1
	a.uleb(7, 0x11)
	a.u8(1)
	a.uleb(append(attributes, 0, 0)...)
	a.u8(0)
	return w.b, a.b
}

func TestRelativePathsBeginAtTheDirectoryOfTheCompilation(t *testing.T) {
	texts := []byte("x\x00/src\x00")
	inline := func(w *writer) { w.text("/src"); w.offset(0) }
	for name, c := range map[string]struct {
		version    uint16
		attributes []uint64
		values     func(*writer)
		str        []byte
		want       string
	}{
		"inline":               {4, []uint64{atCompDir, formString, atStmtList, formSecOffset}, inline, nil, "/src/lib/b.c:20"},
		"in .debug_str":        {3, []uint64{3, formData2, atCompDir, formStrp, atStmtList, formSecOffset}, func(w *writer) { w.u16(1); w.offset(2); w.offset(0) }, texts, "/src/lib/b.c:20"},
		"in .debug_line_str":   {5, []uint64{atCompDir, formLineStrp, atStmtList, formSecOffset}, func(w *writer) { w.offset(2); w.offset(0) }, texts, "/src/lib/b.c:20"},
		"in another file":      {4, []uint64{atCompDir, formGNUStrpAlt, atStmtList, formSecOffset}, func(w *writer) { w.offset(2); w.offset(0) }, texts, "lib/b.c:20"},
		"outside the section":  {4, []uint64{atCompDir, formStrp, atStmtList, formSecOffset}, func(w *writer) { w.offset(200); w.offset(0) }, texts, "lib/b.c:20"},
		"of another unit":      {4, []uint64{atCompDir, formString, atStmtList, formSecOffset}, func(w *writer) { w.text("/src"); w.offset(8) }, nil, "lib/b.c:20"},
		"of an unknown form":   {4, []uint64{3, 0x99, atCompDir, formString, atStmtList, formSecOffset}, inline, nil, "lib/b.c:20"},
		"of a unit without it": {4, []uint64{atStmtList, formSecOffset}, func(w *writer) { w.offset(0) }, nil, "lib/b.c:20"},
		"of an unknown unit":   {6, []uint64{atCompDir, formString, atStmtList, formSecOffset}, inline, nil, "lib/b.c:20"},
	} {
		for _, is64 := range []bool{false, true} {
			for kind, open := range map[string]func([]byte) Section{"": section, ", compressed": inflated} {
				t.Run(fmt.Sprintf("%s, 64-bit format %v%s", name, is64, kind), func(t *testing.T) {
					first, _ := debugInfo(6, false, nil, func(*writer) {}) // of an unknown version
					info, abbrev := debugInfo(c.version, is64, c.attributes, c.values)
					line := lineTable{version: min(c.version, 4), is64: is64, opcodes: func(w *writer) { w.row(0x1000, 2, 20) }}
					got, err := read(t, Sections{
						Line: open(line.bytes()), Info: open(append(first, info...)), Abbrev: open(abbrev), Str: open(c.str), LineStr: open(c.str),
					}, 0x1000)
					require.NoError(t, err)
					assert.Equal(t, []string{c.want}, got)
				})
			}
		}
	}
}

func TestBothByteOrdersAreRead(t *testing.T) {
	for version := uint16(2); version <= 5; version++ {
		line := lineTable{version: version, order: binary.BigEndian, opcodes: func(w *writer) { w.row(0x1000, 3, 10) }}
		got, err := read(t, Sections{Line: section(line.bytes()), Order: binary.BigEndian}, 0x1000)
		require.NoError(t, err)
		assert.Equal(t, []string{"/usr/include/c.h:10"}, got, "version %d", version)
	}
}

// An unreadable program costs only its own places.
func TestAnUnreadableProgramIsReportedAndLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		table lineTable
		want  string
	}{
		"of another version":     {lineTable{version: 6}, "line table at byte 0: expected a line table of version 2 to 5, got 6"},
		"without a line range":   {lineTable{header: func(f *[4]uint8) { f[2] = 0 }}, "expected a line range and an opcode base of at least 1, got 0 and 13"},
		"without an opcode base": {lineTable{header: func(f *[4]uint8) { f[3] = 0 }}, "expected a line range and an opcode base of at least 1, got 14 and 0"},
		"with a claimed number":  {lineTable{lists: func(w *writer) { w.u8(1); w.uleb(lnctPath, formString, 1<<40) }}, "expected lists of directories and files"},
		"with many files": {lineTable{lists: func(w *writer) {
			w.u8(1)
			w.uleb(lnctPath, formString, maxFiles+1)
			w.b = append(w.b, make([]byte, maxFiles+1)...)
			w.u8(0, 0)
		}}, "expected lists of directories and files"},
		"with entries without parts":    {lineTable{lists: func(w *writer) { w.u8(0); w.uleb(1 << 10) }}, "expected lists of directories and files"},
		"with parts without bytes":      {lineTable{lists: func(w *writer) { w.u8(1); w.uleb(lnctPath, formFlagPresent, 1<<17) }}, "expected lists of directories and files"},
		"with an unknown form":          {lineTable{lists: func(w *writer) { w.u8(1); w.uleb(lnctPath, 0x99, 1) }}, "expected lists of directories and files"},
		"with lists beyond the header":  {lineTable{version: 4, lists: func(w *writer) { w.text("lib") }}, "expected lists of directories and files"},
		"with a short argument":         {lineTable{opcodes: func(w *writer) { w.u8(lnsAdvancePC, 0x80) }}, "expected arguments of an opcode"},
		"with a short address":          {lineTable{opcodes: func(w *writer) { w.u8(lnsExtended, 3, lneSetAddress, 1, 2) }}, "expected an address of 4 or 8 bytes, got 2"},
		"with an empty extended opcode": {lineTable{opcodes: func(w *writer) { w.u8(lnsExtended, 0) }}, "expected an extended opcode of 1 to 0 bytes, got 0"},
		"with an opcode beyond it":      {lineTable{opcodes: func(w *writer) { w.u8(lnsExtended, 100, 1) }}, "expected an extended opcode of 1 to 1 bytes, got 100"},
	} {
		t.Run(name, func(t *testing.T) {
			good := lineTable{opcodes: func(w *writer) { w.row(0x2000, 2, 20) }}
			got, err := read(t, Sections{Line: section(append(c.table.bytes(), good.bytes()...))}, 0x1000, 0x2000)
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, []string{"", "/src/lib/b.c:20"}, got)
		})
	}
	t.Run("with a length beyond the section", func(t *testing.T) {
		good := lineTable{}.bytes()
		got, err := read(t, Sections{Line: section(append(good, 9, 0, 0, 0, 5))}, 0x1000)
		require.ErrorContains(t, err, fmt.Sprintf("line table at byte %d: expected at most 1 bytes, got 9", len(good)))
		assert.Equal(t, []string{"/src/a.c:10"}, got)
	})
	t.Run("in a section that ends early", func(t *testing.T) {
		content := lineTable{}.bytes()
		short := inflated(content[:20])
		short.Size = int64(len(content))
		_, err := read(t, Sections{Line: short}, 0x1000)
		require.ErrorIs(t, err, io.EOF)
	})
	t.Run("a unit of .debug_info beyond the section", func(t *testing.T) {
		line := lineTable{version: 4}
		got, err := read(t, Sections{Line: section(line.bytes()), Info: section([]byte{9, 9, 0, 0, 4, 0}), Abbrev: section([]byte{0})}, 0x1000)
		require.ErrorContains(t, err, "a unit of .debug_info ends outside the section")
		assert.Equal(t, []string{"a.c:10"}, got)
	})
}

// Work that costs time or memory without many bytes reaches the limit, too.
func TestLimitsHoldForAllWork(t *testing.T) {
	many := make([]uint64, 1<<12)
	for i := range many {
		many[i] = 0x1000 + uint64(i)
	}
	path := bytes.Repeat([]byte("x"), maxTextBytes-10)
	for name, c := range map[string]struct {
		s      Sections
		starts []uint64
	}{
		"searches": {Sections{Line: section(lineTable{opcodes: func(w *writer) {
			w.row(0x1000, 1, 10)
			w.b = append(w.b, bytes.Repeat([]byte{13 + 5}, 1<<17)...) // rows at the same address
		}}.bytes())}, many},
		"long paths": {Sections{Line: section(lineTable{
			lists: func(w *writer) {
				w.u8(1)
				w.uleb(lnctPath, formString, 1)
				w.text("/" + string(path))
				w.u8(1)
				w.uleb(lnctPath, formString, 1<<12)
				for i := range 1 << 12 {
					w.text(fmt.Sprint(i))
				}
			},
			opcodes: func(w *writer) {
				for i := range uint64(1 << 12) {
					w.row(0x1000+i, i, 10)
				}
			},
		}.bytes())}, many},
		"paths that are too long": {Sections{Line: section(lineTable{
			lists: func(w *writer) {
				w.u8(1)
				w.uleb(lnctPath, formString, 1)
				w.text("/" + string(path))
				w.u8(1)
				w.uleb(lnctPath, formString, 1<<10)
				for i := range 1 << 10 {
					w.text(fmt.Sprintf("%020d", i))
				}
			},
			opcodes: func(w *writer) {
				for i := range uint64(1 << 10) {
					w.row(0x1000+i, i, 10)
				}
			},
		}.bytes())}, many},
		"programs": {Sections{Line: section(bytes.Repeat(lineTable{}.bytes(), 1<<14))}, many[:1]},
		"skipped bytes of a compressed section": {func() Sections {
			info := Section{Open: func() io.Reader { return endless(1) }, Size: 1 << 30}
			return Sections{Line: section(lineTable{version: 4}.bytes()), Info: info, Abbrev: section([]byte{0})}
		}(), many[:1]},
		"a large compressed section": {func() Sections {
			str := Section{Open: func() io.Reader { return endless(1) }, Size: 1 << 40}
			return Sections{Line: section(lineTable{lists: func(w *writer) {
				w.u8(1)
				w.uleb(lnctPath, formStrp, 1)
				w.offset(0)
				w.u8(1)
				w.uleb(lnctPath, formStrp, 2)
				w.offset(0)
				w.offset(0)
			}}.bytes()), Str: str}
		}(), many[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, c.s, c.starts...)
			require.ErrorIs(t, err, ErrLimit)
		})
	}
}

// endless is a section of units of that many times 16 MiB.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	clear(p)
	copy(p, []byte{0, 0, 0, byte(e)})
	return len(p), nil
}

// With any limit, no program and no compressed section is in memory if it is larger than maxProgramBytes.
func TestNothingLargeIsInMemory(t *testing.T) {
	large := func(units endless) Section {
		return Section{Open: func() io.Reader { return units }, Size: 1 << 30}
	}
	relative := section(lineTable{version: 4}.bytes())
	for name, s := range map[string]Sections{
		"a program":     {Line: large(16)},
		"abbreviations": {Line: relative, Info: section([]byte{0}), Abbrev: large(0)},
	} {
		t.Run(name, func(t *testing.T) {
			s.Order = binary.LittleEndian
			_, err := Read(s, []uint64{0x1000}, Limits{MaxBytes: 1 << 40})
			require.ErrorIs(t, err, ErrLimit)
		})
	}
}
