// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// debugSection is a section that is added to an image.
type debugSection struct {
	name    string
	typ     elf.SectionType // default SHT_PROGBITS
	flags   elf.SectionFlag
	content []byte
	// size replaces the size in the header, if it is not 0.
	size uint64
}

// withSections returns the image with more sections, and with names of sections.
func (m image) withSections(sections ...debugSection) []byte {
	file := imageWriter{order: m.order(), class: elf.ELFCLASS64}
	file.raw(m.bytes())
	shoff := m.order().(binary.ByteOrder).Uint64(file.b.Bytes()[elf64SectionsAt:])
	headers := imageWriter{order: m.order(), class: elf.ELFCLASS64}
	headers.raw(file.b.Bytes()[shoff:])
	names := []byte{0}
	sections = append(sections, debugSection{name: ".shstrtab", typ: elf.SHT_STRTAB})
	for i, s := range sections {
		name := uint32(len(names))
		names = append(append(names, s.name...), 0)
		if i == len(sections)-1 {
			s.content = names
		}
		if s.typ == elf.SHT_NULL {
			s.typ = elf.SHT_PROGBITS
		}
		begin := uint64(headers.b.Len())
		headers.section(s.typ, 0, uint64(file.b.Len()), uint64(len(s.content)), 0)
		header := headers.b.Bytes()[begin:]
		order := m.order().(binary.ByteOrder)
		order.PutUint32(header, name)
		order.PutUint64(header[8:], uint64(s.flags))
		if s.size > 0 {
			order.PutUint64(header[32:], s.size)
		}
		file.raw(s.content)
	}
	data := file.b.Bytes()
	order := m.order().(binary.ByteOrder)
	order.PutUint64(data[elf64SectionsAt:], uint64(len(data)))
	count := uint16(headers.b.Len() / 64)
	order.PutUint16(data[60:], count)
	order.PutUint16(data[elf64SectionNames:], count-1)
	return append(data, headers.b.Bytes()...)
}

// lineTable is a program of .debug_line with a row for an address: /src/shop.c:42.
func lineTable(addr uint64) []byte {
	header := append([]byte{1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0}, "/src/shop.c\x00\x00\x00\x00\x00"...)
	unit := append([]byte{4, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(header)))...)
	unit = append(append(unit, header...), 0, 9, 2)
	unit = append(binary.LittleEndian.AppendUint64(unit, addr), 3, 41, 1, 0, 1, 1)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(unit))), unit...)
}

// longPathLineTable is a program of .debug_line with many rows for an address. The path of their file is too long.
func longPathLineTable(addr uint64, rows int) []byte {
	long := strings.Repeat("x/", 2040)
	header := []byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}
	header = append(append(header, 1, 1, 8, 1, '/'), long+"\x00"...)
	header = append(append(header, 1, 1, 8, 2), long+"\x00"+long+"\x00"...)
	unit := append([]byte{5, 0, 8, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(header)))...)
	row := append(binary.LittleEndian.AppendUint64([]byte{0, 9, 2}, addr), 4, 1, 3, 9, 1, 0, 1, 1) // a sequence of its own
	unit = append(append(unit, header...), bytes.Repeat(row, rows)...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(unit))), unit...)
}

// longPathShop returns a small file with many rows for its function, whose path is too long.
func longPathShop(rows int) []byte {
	line := longPathLineTable(0x1100, rows)
	content := deflated(chdr(elf.COMPRESS_ZLIB, uint64(len(line))), line)
	return shopImage("pay").withSections(debugSection{name: ".debug_line", flags: elf.SHF_COMPRESSED, content: content})
}

// A file of some kilobytes can have thousands of rows. They cost no text each.
func TestAPathThatIsTooLongIsMadeOnce(t *testing.T) {
	const rows = 20_000
	data := longPathShop(rows)
	assert.Less(t, len(data), 4000)
	allocations := testing.AllocsPerRun(1, func() {
		table, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shopBuildID}, DefaultSettings(), unchecked)
		require.NoError(t, err)
		require.NoError(t, table.lines.err)
		_, _, reason := table.lines.at(0)
		require.Equal(t, NoRow, reason)
	})
	assert.Less(t, allocations, float64(rows/10))
}

// deflated returns content as zlib compresses it, after a header.
func deflated(header, content []byte) []byte {
	var b bytes.Buffer
	b.Write(header)
	w := zlib.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

// chdr returns the header of a compressed section.
func chdr(typ elf.CompressionType, size uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(typ))
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, size), 1)
}

func zdebug(size uint64) []byte { return binary.BigEndian.AppendUint64([]byte("ZLIB"), size) }

// lineSections are the forms of a section with line tables, and the places in them.
func lineSections() map[string]struct {
	section debugSection
	want    string // reason, or "" for a line
	err     string
} {
	line := lineTable(0x1100)
	size := uint64(len(line))
	half := deflated(chdr(elf.COMPRESS_ZLIB, size), line)
	half = half[:len(half)/2]
	return map[string]struct {
		section debugSection
		want    string
		err     string
	}{
		"not compressed":            {debugSection{name: ".debug_line", content: line}, "", ""},
		"compressed":                {debugSection{name: ".debug_line", flags: elf.SHF_COMPRESSED, content: deflated(chdr(elf.COMPRESS_ZLIB, size), line)}, "", ""},
		"as GNU tools compressed":   {debugSection{name: ".zdebug_line", content: deflated(zdebug(size), line)}, "", ""},
		"with another name":         {debugSection{name: ".debug_lines", content: line}, NoDebugInfo, ""},
		"without content":           {debugSection{name: ".debug_line", typ: elf.SHT_NOBITS, content: line}, NoDebugInfo, ""},
		"of another function":       {debugSection{name: ".debug_line", content: lineTable(0x2000)}, NoRow, ""},
		"beyond the file":           {debugSection{name: ".debug_line", content: line, size: 1 << 40}, Unreadable, "expected a section in a file of"},
		"compressed, claimed size":  {debugSection{name: ".debug_line", flags: elf.SHF_COMPRESSED, content: deflated(chdr(elf.COMPRESS_ZLIB, 1<<40), line)}, "", "EOF"},
		"compressed, negative size": {debugSection{name: ".debug_line", flags: elf.SHF_COMPRESSED, content: deflated(chdr(elf.COMPRESS_ZLIB, 1<<63), line)}, Unreadable, "expected a size below 2^63"},
		"compressed, ends early":    {debugSection{name: ".debug_line", flags: elf.SHF_COMPRESSED, content: half}, Unreadable, "EOF"},
		"compressed, another way":   {debugSection{name: ".debug_line", flags: elf.SHF_COMPRESSED, content: deflated(chdr(99, size), line)}, Unreadable, "unknown compression type"},
		"not ZLIB":                  {debugSection{name: ".zdebug_line", content: line}, Unreadable, "expected a compressed section with the header ZLIB"},
		"ZLIB, negative size":       {debugSection{name: ".zdebug_line", content: deflated(zdebug(math.MaxUint64), line)}, Unreadable, "expected a size below 2^63"},
		"ZLIB, not compressed":      {debugSection{name: ".zdebug_line", content: append(zdebug(size), line...)}, Unreadable, "zlib: invalid header"},
	}
}

// Several processes load one file. The log has one line for it.
func TestMissingLinesAreReportedOnceForAFile(t *testing.T) {
	for _, buildID := range []string{shopBuildID, ""} {
		var reported []error
		bed := newFilesBed(t, func(s *Settings) {
			s.ReportLines = func(_ string, err error) { reported = append(reported, err) }
		})
		m := shopImage("pay")
		m.buildID = buildID
		m.write(t, bed.dir, "shop")
		for range 3 {
			assert.Equal(t, "pay", bed.name(t, Mapping{Path: "/shop", BuildID: []byte(buildID)}))
		}
		require.Len(t, reported, 1)
		require.ErrorIs(t, reported[0], ErrNoDebugInfo)
	}
}

// Names do not depend on debug information.
func TestAnObjectHasItsNamesWithAnyDebugInformation(t *testing.T) {
	for name, c := range lineSections() {
		t.Run(name, func(t *testing.T) {
			data := shopImage("pay").withSections(c.section)
			table, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shopBuildID}, DefaultSettings(), unchecked)
			require.NoError(t, err)
			assert.Equal(t, "pay", string(table.function(0x1100)))
			file, line, reason := table.lines.at(0)
			assert.Equal(t, c.want, reason)
			if c.want == "" {
				assert.Equal(t, "/src/shop.c", file)
				assert.EqualValues(t, 42, line)
			}
			if c.err != "" {
				require.ErrorContains(t, table.lines.err, c.err)
			}
		})
	}
	t.Run("names of sections without room", func(t *testing.T) {
		data := shopImage("pay").withSections(debugSection{name: ".debug_line", content: lineTable(0x1100)}, debugSection{name: strings.Repeat("x", maxSectionNames)})
		table, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shopBuildID}, DefaultSettings(), unchecked)
		require.NoError(t, err)
		assert.Equal(t, "pay", string(table.function(0x1100)))
		require.ErrorContains(t, table.lines.err, "names of sections: expected at most 1048576 bytes, got ")
	})
	t.Run("lines without room", func(t *testing.T) {
		data := shopImage("pay").withSections(debugSection{name: ".debug_line", content: lineTable(0x1100)})
		settings := DefaultSettings()
		settings.MaxTableBytes = tableBytes(1, len("pay")+1)
		table, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shopBuildID}, settings, unchecked)
		require.NoError(t, err)
		require.ErrorContains(t, table.lines.err, "expected a table of functions and their lines of at most")
		assert.LessOrEqual(t, table.bytes(), settings.MaxTableBytes)
		_, _, reason := table.lines.at(0)
		assert.Equal(t, Unreadable, reason)
	})
}
