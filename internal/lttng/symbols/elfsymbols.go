// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"unsafe"
)

// Sizes of an entry of a table of symbols, by class (Elf32_Sym, Elf64_Sym).
const (
	elf32SymbolSize = 16
	elf64SymbolSize = 24
)

// symbolReader reads the symbols of a file. debug/elf reads only its headers, because the bound on those is too low
// for symbols.
type symbolReader struct {
	r        io.ReaderAt
	size     int64 // of the file, bytes
	file     *elf.File
	settings Settings
}

// read reads the functions of a symbol section into t.
func (s *symbolReader) read(t *table, section *elf.Section) error {
	entry := uint64(elf64SymbolSize)
	if s.file.Class == elf.ELFCLASS32 {
		entry = elf32SymbolSize
	}
	count := section.FileSize / entry
	if most := uint64(s.settings.MaxSymbols); count > most {
		return fmt.Errorf("expected at most %d symbols, got %d", most, count)
	}
	if uint64(section.Link) >= uint64(len(s.file.Sections)) {
		return fmt.Errorf("expected the index of one of %d sections for names, got %d", len(s.file.Sections), section.Link)
	}
	data, err := s.content(section)
	if err != nil {
		return err
	}
	if err := s.reserve(int64(count) * int64(unsafe.Sizeof(candidate{}))); err != nil {
		return err
	}
	candidates, err := readCandidates(bufio.NewReaderSize(data, 64<<10), count, s.file)
	if err != nil || len(candidates) == 0 {
		return err
	}
	names, err := s.readNames(s.file.Sections[section.Link], uint64(s.settings.MaxTableBytes))
	if err != nil {
		return fmt.Errorf("names: %w", err)
	}
	return t.build(candidates, names, s.settings.MaxTableBytes, s.reserve)
}

// reserve reserves memory for the reading.
func (s *symbolReader) reserve(bytes int64) error {
	if s.settings.reserve == nil {
		return nil
	}
	return s.settings.reserve(bytes)
}

// content returns a reader of the section. It fails if the section is not in the file or is compressed.
func (s *symbolReader) content(section *elf.Section) (*io.SectionReader, error) {
	if section.Flags&elf.SHF_COMPRESSED != 0 {
		return nil, errors.New("expected a section that is not compressed")
	}
	// debug/elf has checked that neither number is negative as an int64.
	if offset, size := int64(section.Offset), int64(section.FileSize); offset > s.size || size > s.size-offset {
		return nil, fmt.Errorf("expected a section in a file of %d bytes, got %d bytes at byte %d", s.size, size, offset)
	}
	return io.NewSectionReader(s.r, int64(section.Offset), int64(section.FileSize)), nil
}

// readNames reads a section of strings of at most so many bytes, and sets its last byte to 0, the end of the last
// string.
func (s *symbolReader) readNames(section *elf.Section, most uint64) ([]byte, error) {
	if section.Type != elf.SHT_STRTAB {
		return nil, fmt.Errorf("expected a section of strings, got %v", section.Type)
	}
	if section.FileSize > most {
		return nil, fmt.Errorf("expected at most %d bytes, got %d", most, section.FileSize)
	}
	data, err := s.content(section)
	if err != nil {
		return nil, err
	}
	if err := s.reserve(int64(section.FileSize)); err != nil {
		return nil, err
	}
	names := make([]byte, section.FileSize)
	if _, err := io.ReadFull(data, names); err != nil {
		return nil, err
	}
	if len(names) > 0 {
		names[len(names)-1] = 0
	}
	return names, nil
}

// readCandidates reads count symbols and returns the functions among them that this object defines.
func readCandidates(r io.Reader, count uint64, file *elf.File) ([]candidate, error) {
	candidates := make([]candidate, 0, count)
	entry := make([]byte, elf64SymbolSize)
	if file.Class == elf.ELFCLASS32 {
		entry = entry[:elf32SymbolSize]
	}
	for i := range count {
		if _, err := io.ReadFull(r, entry); err != nil {
			return nil, fmt.Errorf("symbol %d of %d: %w", i, count, err)
		}
		c, info, section := decodeSymbol(entry, file)
		typ := elf.ST_TYPE(info)
		if typ != elf.STT_FUNC && typ != elf.STT_GNU_IFUNC || section == elf.SHN_UNDEF || c.name == 0 {
			continue
		}
		c.local = elf.ST_BIND(info) == elf.STB_LOCAL
		c.weak = elf.ST_BIND(info) == elf.STB_WEAK
		if file.Machine == elf.EM_ARM {
			c.start &^= 1
		}
		if c.size == 0 {
			c.limit = sectionEnd(file, section)
		}
		candidates = append(candidates, c)
	}
	return candidates, nil
}

// decodeSymbol reads one symbol, its st_info and st_shndx.
func decodeSymbol(entry []byte, file *elf.File) (c candidate, info byte, section elf.SectionIndex) {
	order := file.ByteOrder
	c.name = order.Uint32(entry)
	if file.Class == elf.ELFCLASS32 {
		c.start, c.size = uint64(order.Uint32(entry[4:])), uint64(order.Uint32(entry[8:]))
		return c, entry[12], elf.SectionIndex(order.Uint16(entry[14:]))
	}
	c.start, c.size = order.Uint64(entry[8:]), order.Uint64(entry[16:])
	return c, entry[4], elf.SectionIndex(order.Uint16(entry[6:]))
}

// sectionEnd returns the address after a section, or 0 if there is no such section.
func sectionEnd(file *elf.File, index elf.SectionIndex) uint64 {
	if int(index) >= len(file.Sections) {
		return 0
	}
	s := file.Sections[index]
	return s.Addr + s.Size
}
