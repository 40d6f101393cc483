// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
)

// maxHeaderBytes bounds the bytes that are read before the symbols: headers of segments and sections, and notes.
const maxHeaderBytes = 4 << 20

// readTable reads the functions of an ELF file, if it is the right file:
//
//  1. Read the headers, and compare the build ID or the size in memory with the tracer's report. Then call check.
//  2. Read the functions of .symtab, or those of .dynsym if there are none.
//  3. Sort them, choose one for each address, and copy their names.
//  4. Read the source lines at which they begin. Without these, the table still has the names.
//
// The file may contain anything. The bytes read are bounded, and a panic of debug/elf is returned as an error.
func readTable(r io.ReaderAt, size int64, id identity, settings Settings, check func() error) (t *table, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("reading the ELF file failed: %v", p)
		}
	}()
	header, err := newHeaderReader(r)
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(header)
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(file)
	if err != nil {
		return nil, err
	}
	if err := checkIdentity(file, l, id); err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	t = &table{layout: l}
	for _, typ := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		section := file.SectionByType(typ)
		if section == nil {
			continue
		}
		s := symbolReader{r: r, size: size, file: file, settings: settings}
		if err := s.read(t, section); err != nil {
			return nil, fmt.Errorf("%v: %w", typ, err)
		}
		if len(t.symbols) > 0 {
			t.full = typ == elf.SHT_SYMTAB
			if settings.SourceLines {
				header.left = math.MaxInt64 // package dwarfline has its own bound
				t.lines = s.readLines(t)
			}
			return t, nil
		}
	}
	return nil, errors.New("expected a table of symbols with functions, got none: the file is stripped")
}

// layout describes the place of an object in memory.
type layout struct {
	// fixed is set if the object is loaded at the addresses in its file (ET_EXEC).
	fixed bool
	// first is the address of the first loadable segment in the file.
	first uint64
	// memorySize is the size from the lowest address of a loadable segment to the highest end of one.
	memorySize uint64
	// thumb is set if the lowest bit of a function's address marks Thumb code and is not part of the address.
	thumb bool
}

// layoutOf reads the program headers (System V ABI, chapter 5).
func layoutOf(file *elf.File) (layout, error) {
	if file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN {
		return layout{}, fmt.Errorf("expected an executable or a shared object, got %v", file.Type)
	}
	l := layout{fixed: file.Type == elf.ET_EXEC, thumb: file.Machine == elf.EM_ARM}
	low, high, segments := uint64(math.MaxUint64), uint64(0), 0
	for _, p := range file.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if segments == 0 {
			l.first = p.Vaddr
		}
		if p.Memsz > math.MaxUint64-p.Vaddr {
			return layout{}, fmt.Errorf("segment at 0x%x has 0x%x bytes, expected it to end below 2^64", p.Vaddr, p.Memsz)
		}
		low, high = min(low, p.Vaddr), max(high, p.Vaddr+p.Memsz)
		segments++
	}
	if segments == 0 {
		return layout{}, errors.New("expected a loadable segment, got none")
	}
	l.memorySize = high - low
	return l, nil
}

// checkIdentity returns an error if the file is not the reported one.
func checkIdentity(file *elf.File, l layout, id identity) error {
	got, err := buildID(file)
	switch {
	case err != nil:
		return err
	case got != id.buildID && id.buildID == "":
		return fmt.Errorf("expected no build ID, got %x", got)
	case got != id.buildID && got == "":
		return fmt.Errorf("expected build ID %x, got none", id.buildID)
	case got != id.buildID:
		return fmt.Errorf("expected build ID %x, got %x", id.buildID, got)
	case got == "" && l.memorySize != id.memorySize:
		return fmt.Errorf("expected segments of 0x%x bytes, got 0x%x", id.memorySize, l.memorySize)
	}
	return nil
}

// headerReader is the reader for debug/elf. It provides the headers of a file, but not the names of its sections:
// they are not used, and a small file can have many sections with the same name of one megabyte. It fails after left
// bytes.
type headerReader struct {
	r    io.ReaderAt
	left int64
	// names is the offset of the field in the ELF header with the section of names (e_shstrndx), 2 bytes.
	names int64
}

// The offset of e_shstrndx in the ELF header, by class.
const (
	elf32SectionNames = 50
	elf64SectionNames = 62
)

func newHeaderReader(r io.ReaderAt) (*headerReader, error) {
	var ident [elf.EI_NIDENT]byte
	if n, err := r.ReadAt(ident[:], 0); n < len(ident) {
		return nil, fmt.Errorf("expected an ELF header, got %d bytes: %w", n, err)
	}
	if string(ident[:len(elf.ELFMAG)]) != elf.ELFMAG {
		return nil, fmt.Errorf("expected an ELF file, got one that begins with %q", ident[:len(elf.ELFMAG)])
	}
	h := &headerReader{r: r, left: maxHeaderBytes, names: elf64SectionNames}
	if elf.Class(ident[elf.EI_CLASS]) == elf.ELFCLASS32 {
		h.names = elf32SectionNames
	}
	return h, nil
}

// ReadAt reads p if left allows it. It replaces e_shstrndx by SHN_UNDEF, which is 0.
func (h *headerReader) ReadAt(p []byte, offset int64) (int, error) {
	if int64(len(p)) > h.left {
		return 0, fmt.Errorf("expected headers and notes of at most %d bytes, got more", maxHeaderBytes)
	}
	h.left -= int64(len(p))
	n, err := h.r.ReadAt(p, offset)
	for at := h.names; at < h.names+2; at++ {
		if i := at - offset; 0 <= i && i < int64(n) {
			p[i] = 0
		}
	}
	return n, err
}
