// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shop is an image with all parts that a file can have.
var shop = image{
	first: 0x1000, buildID: "\x01\x02\x03\x04\x05\x06\x07\x08",
	symbols:  []imageSymbol{{name: "pay", start: 0x1100, size: 0x10}, {name: "_ZN4shop5Order3payEi", start: 0x1110, size: 0x10}},
	exported: []imageSymbol{{name: "pay", start: 0x1100, size: 0x10}},
}

func TestAFileMustBeTheLoadedOne(t *testing.T) {
	without := shop
	without.buildID = ""
	for name, c := range map[string]struct {
		image image
		told  identity
		want  string // the error, "" for none
	}{
		"the reported build ID":              {shop, identity{buildID: shop.buildID, memorySize: 1}, ""},
		"another build ID":                   {shop, identity{buildID: "\xaa\xbb"}, "expected build ID aabb, got 0102030405060708"},
		"no build ID, but one was reported":  {without, identity{buildID: "\xaa\xbb"}, "expected build ID aabb, got none"},
		"a build ID, but none was reported":  {shop, identity{memorySize: 0x1000}, "expected no build ID, got 0102030405060708"},
		"no build ID, and the reported size": {without, identity{memorySize: 0x1000}, ""},
		"no build ID, and another size":      {without, identity{memorySize: 0x2000}, "expected segments of 0x2000 bytes, got 0x1000"},
		"a file that can't be loaded":        {image{typ: elf.ET_REL}, identity{}, "expected an executable or a shared object, got ET_REL"},
		"a core dump":                        {image{typ: elf.ET_CORE}, identity{}, "expected an executable or a shared object, got ET_CORE"},
		"a segment that ends beyond 2^64":    {image{first: 1<<64 - 0x100}, identity{}, "segment at 0xffffffffffffff00 has 0x1000 bytes, expected it to end below 2^64"},
	} {
		t.Run(name, func(t *testing.T) {
			data := c.image.bytes()
			_, err := readTable(bytes.NewReader(data), int64(len(data)), c.told, DefaultSettings(), unchecked)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
		})
	}
}

func TestOtherNotesMayPrecedeTheBuildID(t *testing.T) {
	note := func(owner string, typ uint32, description string, align uint64) []byte {
		w := imageWriter{order: binary.LittleEndian}
		w.u32(uint32(len(owner)))
		w.u32(uint32(len(description)))
		w.u32(typ)
		w.raw([]byte(owner))
		w.pad(roundUp(uint64(w.b.Len()), align))
		w.raw([]byte(description))
		w.pad(roundUp(uint64(w.b.Len()), align))
		return w.b.Bytes()
	}
	join := func(notes ...[]byte) []byte { return bytes.Join(notes, nil) }
	for name, c := range map[string]struct {
		data  []byte
		align uint64
		want  string
	}{
		"alone":                         {note(noteOwner, noteBuildID, "abcde", 4), 4, "abcde"},
		"after another note of GNU":     {join(note(noteOwner, 1, "abi", 4), note(noteOwner, noteBuildID, "abcde", 4)), 4, "abcde"},
		"after a note of another owner": {join(note("Go\x00\x00", noteBuildID, "no", 4), note(noteOwner, noteBuildID, "abcde", 4)), 4, "abcde"},
		"aligned to 8":                  {join(note(noteOwner, 5, "prop", 8), note(noteOwner, noteBuildID, "abcdefgh", 8)), 8, "abcdefgh"},
		"of alignment 1, which is 4":    {note(noteOwner, noteBuildID, "abcd", 4), 1, "abcd"},
		"without its padding":           {note(noteOwner, noteBuildID, "abcde", 4)[:12+4+5], 4, "abcde"},
		"longer than the segment":       {note(noteOwner, noteBuildID, "abcd", 4)[:12+4+3], 4, ""},
		"empty":                         {note(noteOwner, noteBuildID, "", 4), 4, ""},
		"too long":                      {note(noteOwner, noteBuildID, string(make([]byte, 65)), 4), 4, ""},
		"an owner longer than memory":   {[]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00"), 4, ""},
		"no notes":                      {nil, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, buildIDNote(binary.LittleEndian, c.data, c.align))
		})
	}
}

func TestATruncatedFileIsAnError(t *testing.T) {
	data := shop.bytes()
	full, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shop.buildID}, DefaultSettings(), unchecked)
	require.NoError(t, err)
	for n := range len(data) {
		table, err := readTable(bytes.NewReader(data[:n]), int64(n), identity{buildID: shop.buildID}, DefaultSettings(), unchecked)
		if err == nil {
			// The missing part is unused.
			require.Equal(t, full, table, "%d bytes", n)
		}
	}
}

func TestBoundsOfAFile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Settings)
		want   string
	}{
		"symbols": {func(s *Settings) { s.MaxSymbols = 2 }, "SHT_SYMTAB: expected at most 2 symbols, got 3"},
		"names":   {func(s *Settings) { s.MaxTableBytes = 10 }, "SHT_SYMTAB: names: expected at most 10 bytes, got 26"},
		"table":   {func(s *Settings) { s.MaxTableBytes = 64 }, "SHT_SYMTAB: expected a table of functions of at most 64 bytes, got "},
	} {
		t.Run(name, func(t *testing.T) {
			settings := DefaultSettings()
			c.change(&settings)
			data := shop.bytes()
			_, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shop.buildID}, settings, unchecked)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// patched returns the file of shop with a changed field of a section.
func patched(section elf.SectionIndex, field int, value uint64) []byte {
	data := shop.bytes()
	sections := binary.LittleEndian.Uint64(data[40:])
	at := data[sections+uint64(section)*64+uint64(field):]
	if field == sectionType || field == sectionLink {
		binary.LittleEndian.PutUint32(at, uint32(value))
	} else {
		binary.LittleEndian.PutUint64(at, value)
	}
	return data
}

// Offsets of fields in a section's header (Elf64_Shdr).
const (
	sectionType   = 4
	sectionFlags  = 8
	sectionOffset = 24
	sectionSize   = 32
	sectionLink   = 40
)

func TestSectionsWithWrongHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"symbols beyond the end of the file":   {patched(imageSymtab, sectionOffset, 1<<40), "SHT_SYMTAB: expected a section in a file of"},
		"more symbols than the file has bytes": {patched(imageSymtab, sectionSize, 24<<20), "SHT_SYMTAB: expected a section in a file of"},
		"more symbols than memory":             {patched(imageSymtab, sectionSize, 1<<62), "SHT_SYMTAB: expected at most 4194304 symbols, got 192153584101141162"},
		"more names than the file has bytes":   {patched(imageStrtab, sectionSize, 1<<27), "names: expected a section in a file of"},
		"names in no section":                  {patched(imageSymtab, sectionLink, 1<<31), "expected the index of one of 7 sections for names, got 2147483648"},
		"names in code":                        {patched(imageSymtab, sectionLink, 1), "names: expected a section of strings, got SHT_PROGBITS"},
		"compressed symbols":                   {patched(imageSymtab, sectionFlags, uint64(elf.SHF_COMPRESSED)), ""},
		"compressed names":                     {patched(imageStrtab, sectionFlags, uint64(elf.SHF_COMPRESSED)), ""},
		"notes without end":                    {patched(imageNote, sectionSize, 1<<40), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readTable(bytes.NewReader(c.data), int64(len(c.data)), identity{buildID: shop.buildID}, DefaultSettings(), unchecked)
			switch {
			case c.want != "":
				require.ErrorContains(t, err, c.want)
			case name != "notes without end": // the segment has the note too
				require.Error(t, err)
			}
		})
	}
}

func TestUnreadableNotesAreAnError(t *testing.T) {
	m := shop
	m.buildID = ""
	for name, c := range map[string]struct {
		size uint64
		want string
	}{
		"more than the limit":    {maxNoteBytes + 1, "expected at most 65536 bytes, got 65537"},
		"more than the file has": {maxNoteBytes, "expected 65536 bytes, got "},
		"none":                   {0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data := m.bytes()
			binary.LittleEndian.PutUint64(data[64+56+32:], c.size) // p_filesz of the second segment
			_, err := readTable(bytes.NewReader(data), int64(len(data)), identity{memorySize: 0x1000}, DefaultSettings(), unchecked)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "notes at byte ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestAFileWithoutSegmentsIsAnError(t *testing.T) {
	data := shop.bytes()
	binary.LittleEndian.PutUint32(data[64:], uint32(elf.PT_NULL))
	_, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shop.buildID}, DefaultSettings(), unchecked)
	require.EqualError(t, err, "expected a loadable segment, got none")
}

func TestASymbolTableWithoutNamesHasNoFunctions(t *testing.T) {
	data := patched(imageStrtab, sectionSize, 0)
	_, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shop.buildID}, DefaultSettings(), unchecked)
	require.NoError(t, err, "the exported functions are left")
}

// Many sections have the same long name: together their names would use gigabytes.
func TestNamesOfSectionsAreNotRead(t *testing.T) {
	const sections, nameBytes = 40_000, 1 << 20
	w := imageWriter{order: binary.LittleEndian, class: elf.ELFCLASS64}
	w.raw([]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT), 0, 0, 0, 0, 0, 0, 0, 0, 0})
	w.u16(uint16(elf.ET_DYN))
	w.u16(uint16(elf.EM_X86_64))
	w.u32(uint32(elf.EV_CURRENT))
	w.word(0)
	w.word(64)
	w.word(64 + 56)
	w.u32(0)
	for _, n := range []uint16{64, 56, 1, 64, sections, 1} {
		w.u16(n)
	}
	w.segment(elf.PT_LOAD, 0, 0, 0x10, 0x1000, 0x1000)
	w.section(elf.SHT_NULL, 0, 0, 0, 0)
	w.section(elf.SHT_STRTAB, 0, 64+56+sections*64, nameBytes, 0)
	for range sections - 2 {
		w.section(elf.SHT_PROGBITS, 0, 0, 0, 0)
	}
	w.raw(append(bytes.Repeat([]byte("n"), nameBytes-1), 0))
	r := countingReader{r: bytes.NewReader(w.b.Bytes())}
	_, err := readTable(&r, int64(w.b.Len()), identity{memorySize: 0x1000}, DefaultSettings(), unchecked)
	require.EqualError(t, err, "expected a table of symbols with functions, got none: the file is stripped")
	assert.Less(t, r.bytes, 64*sections+1024, "bytes read")
}

// countingReader counts the bytes read.
type countingReader struct {
	r     io.ReaderAt
	bytes int
}

func (c *countingReader) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.r.ReadAt(p, offset)
	c.bytes += n
	return n, err
}

func TestHeadersAreBounded(t *testing.T) {
	data := shop.bytes()
	binary.LittleEndian.PutUint16(data[58:], 0xffff) // size of a section's header
	binary.LittleEndian.PutUint16(data[60:], 0xff00) // number of sections
	_, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: shop.buildID}, DefaultSettings(), unchecked)
	require.ErrorContains(t, err, "expected headers and notes of at most 4194304 bytes, got more")
}

// panickingReader is a file whose reader panics.
type panickingReader struct{}

func (panickingReader) ReadAt([]byte, int64) (int, error) { panic("index out of range") }

func TestAPanicIsAnError(t *testing.T) {
	_, err := readTable(panickingReader{}, 1000, identity{}, DefaultSettings(), unchecked)
	require.EqualError(t, err, "reading the ELF file failed: index out of range")
}
