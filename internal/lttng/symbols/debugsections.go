// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"github.com/callbraid/callbraid/internal/lttng/symbols/dwarfline"
)

// readLines reads the places of a table's functions. If they have no room, there are none.
func (s *symbolReader) readLines(t *table) sourceLines {
	sections, err := s.debugSections()
	if err == nil && !sections.Line.Exists() {
		err = ErrNoDebugInfo
	}
	if err != nil {
		return sourceLines{err: err}
	}
	places := int64(len(t.symbols)) * int64(unsafe.Sizeof(dwarfline.Place{})+unsafe.Sizeof(uint64(0)))
	if err := s.reserve(places); err != nil {
		return sourceLines{err: err}
	}
	starts := make([]uint64, len(t.symbols))
	for i := range t.symbols {
		starts[i] = t.symbols[i].start
	}
	var lines sourceLines
	lines.Places, lines.err = dwarfline.Read(sections, starts, dwarfline.Limits{MaxBytes: s.settings.MaxLineBytes, Reserve: s.reserve})
	lines.bytes = int64(len(lines.Of)) * int64(unsafe.Sizeof(dwarfline.Place{}))
	for _, file := range lines.Files {
		lines.bytes += int64(len(file)) + int64(unsafe.Sizeof(file))
	}
	if most, got := s.settings.MaxTableBytes, t.bytes()+lines.bytes; got > most {
		return sourceLines{err: fmt.Errorf("expected a table of functions and their lines of at most %d bytes, got %d", most, got)}
	}
	return lines
}

// debugSections returns the sections with line tables.
func (s *symbolReader) debugSections() (dwarfline.Sections, error) {
	found := dwarfline.Sections{Order: s.file.ByteOrder, AddressSize: 8}
	if s.file.Class == elf.ELFCLASS32 {
		found.AddressSize = 4
	}
	wanted := map[string]*dwarfline.Section{
		"line": &found.Line, "line_str": &found.LineStr, "str": &found.Str, "info": &found.Info, "abbrev": &found.Abbrev,
	}
	err := s.eachName(func(name []byte, section *elf.Section) error {
		open := s.openSection
		bare, ok := bytes.CutPrefix(name, []byte(".debug_"))
		if !ok {
			bare, ok = bytes.CutPrefix(name, []byte(".zdebug_"))
			open = s.openZdebug
		}
		at := wanted[string(bare)]
		if !ok || at == nil || at.Exists() || section.Type == elf.SHT_NOBITS {
			return nil
		}
		var err error
		if *at, err = open(section); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return found, err
}

// openSection returns a section that is compressed as the ELF specification describes, or not at all.
func (s *symbolReader) openSection(section *elf.Section) (dwarfline.Section, error) {
	if section.Size > math.MaxInt64 {
		return dwarfline.Section{}, fmt.Errorf("expected a size below 2^63, got %d", section.Size)
	}
	result := dwarfline.Section{Open: func() io.Reader { return section.Open() }, Size: int64(section.Size)}
	if section.Flags&elf.SHF_COMPRESSED != 0 {
		return result, nil
	}
	content, err := s.content(section)
	if err != nil {
		return dwarfline.Section{}, err
	}
	result.At, result.Open = content, func() io.Reader { return io.NewSectionReader(content, 0, content.Size()) }
	return result, nil
}

// zdebugHeader is the size of the header of .zdebug sections: "ZLIB", and the size of the content in 8 bytes.
const zdebugHeader = 12

// openZdebug returns a section that is compressed as GNU tools did before the ELF specification described it.
func (s *symbolReader) openZdebug(section *elf.Section) (dwarfline.Section, error) {
	content, err := s.content(section)
	if err != nil {
		return dwarfline.Section{}, err
	}
	var header [zdebugHeader]byte
	if _, err := content.ReadAt(header[:], 0); err != nil || string(header[:4]) != "ZLIB" {
		return dwarfline.Section{}, errors.New("expected a compressed section with the header ZLIB")
	}
	size := binary.BigEndian.Uint64(header[4:])
	if size > math.MaxInt64 {
		return dwarfline.Section{}, fmt.Errorf("expected a size below 2^63, got %d", size)
	}
	open := func() io.Reader {
		r, err := zlib.NewReader(io.NewSectionReader(content, zdebugHeader, content.Size()-zdebugHeader))
		if err != nil {
			return failedReader{err}
		}
		return r
	}
	return dwarfline.Section{Open: open, Size: int64(size)}, nil
}

// failedReader is a section that cannot be read.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// Offsets of fields in the ELF header and in section headers, by class: e_shoff, e_shentsize, and e_shstrndx is in
// elffile.go. sh_name is the first field of a section header.
const (
	elf32SectionsAt, elf64SectionsAt     = 32, 40
	elf32SectionsSize, elf64SectionsSize = 46, 58
)

// maxSectionNames is the largest number of bytes of the names of all sections. A linked program has some dozens of
// sections.
const maxSectionNames = 1 << 20

// eachName calls use with each section and its name. debug/elf has no names, because headerReader does not provide them.
func (s *symbolReader) eachName(use func(name []byte, section *elf.Section) error) error {
	var header [64]byte
	if _, err := s.r.ReadAt(header[:], 0); err != nil && err != io.EOF {
		return err
	}
	order := s.file.ByteOrder
	at, size, index := order.Uint64(header[elf64SectionsAt:]), order.Uint16(header[elf64SectionsSize:]), uint32(order.Uint16(header[elf64SectionNames:]))
	if s.file.Class == elf.ELFCLASS32 {
		at, size, index = uint64(order.Uint32(header[elf32SectionsAt:])), order.Uint16(header[elf32SectionsSize:]), uint32(order.Uint16(header[elf32SectionNames:]))
	}
	if index == uint32(elf.SHN_XINDEX) && len(s.file.Sections) > 0 {
		index = s.file.Sections[0].Link
	}
	if index == 0 || uint64(index) >= uint64(len(s.file.Sections)) {
		return nil
	}
	names, err := s.readNames(s.file.Sections[index], maxSectionNames)
	if err != nil {
		return fmt.Errorf("names of sections: %w", err)
	}
	var field [4]byte
	for i, section := range s.file.Sections {
		if _, err := s.r.ReadAt(field[:], int64(at)+int64(i)*int64(size)); err != nil {
			return fmt.Errorf("header of section %d: %w", i, err)
		}
		if name := order.Uint32(field[:]); uint64(name) < uint64(len(names)) {
			if err := use(nameAt(names, name), section); err != nil {
				return err
			}
		}
	}
	return nil
}
