// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// image describes a small ELF file.
type image struct {
	class   elf.Class // default ELFCLASS64
	data    elf.Data  // default ELFDATA2LSB
	typ     elf.Type  // default ET_DYN
	machine elf.Machine
	// first is the address of the segment, size its bytes in memory, by default 0x1000.
	first, size uint64
	buildID     string
	// symbols are those of .symtab, exported those of .dynsym. If nil, there is no such section.
	symbols, exported []imageSymbol
}

// imageSymbol is a symbol of an image. It is in the code section if section is 0.
type imageSymbol struct {
	name        string
	start, size uint64
	typ         elf.SymType // default STT_FUNC
	bind        elf.SymBind // default STB_LOCAL
	section     elf.SectionIndex
}

// Sections of an image, in order.
const (
	imageCode elf.SectionIndex = 1 + iota
	imageNote
	imageSymtab
	imageStrtab
	imageDynsym
	imageDynstr
	imageSections
)

// bytes returns the file: header, segments, contents of sections, sections.
func (m image) bytes() []byte {
	if m.class == 0 {
		m.class = elf.ELFCLASS64
	}
	if m.data == 0 {
		m.data = elf.ELFDATA2LSB
	}
	if m.typ == 0 {
		m.typ = elf.ET_DYN
	}
	if m.size == 0 {
		m.size = 0x1000
	}
	headerSize, segmentSize, sectionSize := 64, 56, 64
	if m.class == elf.ELFCLASS32 {
		headerSize, segmentSize, sectionSize = 52, 32, 40
	}
	const segments = 2
	contents := m.contents()
	offsets := map[elf.SectionIndex]uint64{}
	at := uint64(headerSize + segments*segmentSize)
	for i := imageNote; i < imageSections; i++ {
		at = roundUp(at, 8)
		offsets[i] = at
		at += uint64(len(contents[i]))
	}
	sectionsAt := roundUp(at, 8)

	w := imageWriter{order: m.order(), class: m.class}
	w.raw([]byte{0x7f, 'E', 'L', 'F', byte(m.class), byte(m.data), byte(elf.EV_CURRENT), 0, 0, 0, 0, 0, 0, 0, 0, 0})
	w.u16(uint16(m.typ))
	w.u16(uint16(m.machine))
	w.u32(uint32(elf.EV_CURRENT))
	w.word(m.first) // entry
	w.word(uint64(headerSize))
	w.word(sectionsAt)
	w.u32(0)
	for _, n := range []int{headerSize, segmentSize, segments, sectionSize, int(imageSections), 0} {
		w.u16(uint16(n))
	}
	w.segment(elf.PT_LOAD, 0, m.first, 0x10, m.size, 0x1000)
	w.segment(elf.PT_NOTE, offsets[imageNote], m.first, uint64(len(contents[imageNote])), uint64(len(contents[imageNote])), 4)
	for i := imageNote; i < imageSections; i++ {
		w.pad(offsets[i])
		w.raw(contents[i])
	}
	w.pad(sectionsAt)
	w.section(elf.SHT_NULL, 0, 0, 0, 0)
	w.section(elf.SHT_PROGBITS, m.first, 0, m.size, 0)
	for i, s := range map[elf.SectionIndex]struct {
		typ  elf.SectionType
		link elf.SectionIndex
	}{
		imageNote:   {elf.SHT_NOTE, 0},
		imageSymtab: {elf.SHT_SYMTAB, imageStrtab},
		imageStrtab: {elf.SHT_STRTAB, 0},
		imageDynsym: {elf.SHT_DYNSYM, imageDynstr},
		imageDynstr: {elf.SHT_STRTAB, 0},
	} {
		if contents[i] == nil {
			s.typ = elf.SHT_NULL
		}
		section := imageWriter{order: w.order, class: w.class}
		section.section(s.typ, 0, offsets[i], uint64(len(contents[i])), s.link)
		w.at(sectionsAt+uint64(i)*uint64(sectionSize), section.b.Bytes())
	}
	return w.b.Bytes()
}

func (m image) order() binary.AppendByteOrder {
	if m.data == elf.ELFDATA2MSB {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// contents returns the contents of the sections that have any.
func (m image) contents() map[elf.SectionIndex][]byte {
	contents := map[elf.SectionIndex][]byte{}
	if m.buildID != "" {
		w := imageWriter{order: m.order()}
		w.u32(uint32(len(noteOwner)))
		w.u32(uint32(len(m.buildID)))
		w.u32(noteBuildID)
		w.raw([]byte(noteOwner + m.buildID))
		w.pad(roundUp(uint64(w.b.Len()), 4))
		contents[imageNote] = w.b.Bytes()
	}
	if m.symbols != nil {
		contents[imageSymtab], contents[imageStrtab] = m.symbolTable(m.symbols)
	}
	if m.exported != nil {
		contents[imageDynsym], contents[imageDynstr] = m.symbolTable(m.exported)
	}
	return contents
}

func (m image) symbolTable(symbols []imageSymbol) (entries, names []byte) {
	w := imageWriter{order: m.order(), class: m.class}
	names = []byte{0}
	for _, s := range append([]imageSymbol{{section: elf.SHN_ABS, typ: elf.STT_NOTYPE}}, symbols...) {
		switch s.section {
		case 0:
			s.section = imageCode
		case undefined:
			s.section = elf.SHN_UNDEF
		}
		if s.typ == 0 {
			s.typ = elf.STT_FUNC
		}
		name := uint32(0)
		if s.name != "" {
			name = uint32(len(names))
			names = append(append(names, s.name...), 0)
		}
		info := elf.ST_INFO(s.bind, s.typ)
		w.u32(name)
		if m.class == elf.ELFCLASS32 {
			w.u32(uint32(s.start))
			w.u32(uint32(s.size))
			w.raw([]byte{info, 0})
			w.u16(uint16(s.section))
			continue
		}
		w.raw([]byte{info, 0})
		w.u16(uint16(s.section))
		w.word(s.start)
		w.word(s.size)
	}
	return w.b.Bytes(), names
}

// undefined is the section of a symbol that is defined elsewhere. It differs from SHN_UNDEF, because 0 means the code
// section in imageSymbol.
const undefined = elf.SectionIndex(0x10000)

// imageWriter writes fields of ELF.
type imageWriter struct {
	b     bytes.Buffer
	order binary.AppendByteOrder
	class elf.Class
}

func (w *imageWriter) raw(b []byte) { w.b.Write(b) }
func (w *imageWriter) u16(n uint16) { w.b.Write(w.order.AppendUint16(nil, n)) }
func (w *imageWriter) u32(n uint32) { w.b.Write(w.order.AppendUint32(nil, n)) }

// word writes an address, offset or size of the class.
func (w *imageWriter) word(n uint64) {
	if w.class == elf.ELFCLASS32 {
		w.u32(uint32(n))
		return
	}
	w.b.Write(w.order.AppendUint64(nil, n))
}

// pad writes zeros up to an offset.
func (w *imageWriter) pad(to uint64) { w.b.Write(make([]byte, to-uint64(w.b.Len()))) }

// at writes b at an offset, at or before the end.
func (w *imageWriter) at(offset uint64, b []byte) {
	if end := offset + uint64(len(b)); end > uint64(w.b.Len()) {
		w.pad(end)
	}
	copy(w.b.Bytes()[offset:], b)
}

func (w *imageWriter) segment(typ elf.ProgType, offset, addr, fileSize, memorySize, align uint64) {
	w.u32(uint32(typ))
	flags := uint32(elf.PF_R | elf.PF_X)
	if w.class == elf.ELFCLASS64 {
		w.u32(flags)
	}
	for _, n := range []uint64{offset, addr, addr, fileSize, memorySize} {
		w.word(n)
	}
	if w.class == elf.ELFCLASS32 {
		w.u32(flags)
	}
	w.word(align)
}

func (w *imageWriter) section(typ elf.SectionType, addr, offset, size uint64, link elf.SectionIndex) {
	w.u32(0) // name
	w.u32(uint32(typ))
	w.word(0) // flags
	w.word(addr)
	w.word(offset)
	w.word(size)
	w.u32(uint32(link))
	w.u32(0)  // info
	w.word(4) // alignment
	w.word(0) // size of entries
}

// write writes the image to a file below dir and returns the file's path.
func (m image) write(t *testing.T, dir, name string) string {
	t.Helper()
	return writeFile(t, dir, name, m.bytes())
}

func writeFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, data, 0o644))
	return file
}

// read returns the result of readTable for the image, with its build ID and size as the reported ones.
func (m image) read(t *testing.T) *table {
	t.Helper()
	table, err := m.tryRead()
	require.NoError(t, err)
	return table
}

// unchecked is the check of readTable for a file without a checksum.
func unchecked() error { return nil }

func (m image) tryRead() (*table, error) {
	size := m.size
	if size == 0 {
		size = 0x1000
	}
	data := m.bytes()
	return readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: m.buildID, memorySize: size}, DefaultSettings(), unchecked)
}
