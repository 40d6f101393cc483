// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// function is a symbol of a program.
type function struct {
	name   string
	offset uint64
}

// program returns an object file with a build ID and a symbol table and without code: it names the functions of a
// capture's program.
func program(t testing.TB, buildID []byte, size uint64, functions []function) []byte {
	t.Helper()
	names, symbols := []byte{0}, make([]elf.Sym64, 1, len(functions)+1)
	for i, f := range functions {
		end := size
		if i+1 < len(functions) {
			end = functions[i+1].offset
		}
		symbols = append(symbols, elf.Sym64{
			Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Value: f.offset, Size: end - f.offset,
		})
		names = append(append(names, f.name...), 0)
	}
	note := append(binary.LittleEndian.AppendUint32(nil, 4), 0, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0)
	binary.LittleEndian.PutUint32(note[4:], uint32(len(buildID)))
	note = append(note, buildID...)

	sectionNames := []byte("\x00.text\x00.note.gnu.build-id\x00.symtab\x00.strtab\x00.shstrtab\x00")
	nameOf := func(name string) uint32 { return uint32(bytes.Index(sectionNames, []byte("\x00"+name+"\x00")) + 1) }
	const headers = 64 + 56
	symtab := encode(t, symbols)
	at := uint64(headers)
	place := func(s elf.Section64, content []byte) elf.Section64 {
		s.Off, s.Size = at, uint64(len(content))
		at += s.Size
		return s
	}
	sections := []elf.Section64{
		{},
		{Name: nameOf(".text"), Type: uint32(elf.SHT_NOBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Size: size},
		place(elf.Section64{Name: nameOf(".note.gnu.build-id"), Type: uint32(elf.SHT_NOTE), Flags: uint64(elf.SHF_ALLOC), Addralign: 4}, note),
		place(elf.Section64{Name: nameOf(".symtab"), Type: uint32(elf.SHT_SYMTAB), Link: 4, Info: 1, Entsize: 24, Addralign: 8}, symtab),
		place(elf.Section64{Name: nameOf(".strtab"), Type: uint32(elf.SHT_STRTAB)}, names),
		place(elf.Section64{Name: nameOf(".shstrtab"), Type: uint32(elf.SHT_STRTAB)}, sectionNames),
	}
	header := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Shoff: at, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: 5,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Memsz: size, Align: 0x1000}

	return bytes.Join([][]byte{encode(t, header), encode(t, segment), note, symtab, names, sectionNames, encode(t, sections)}, nil)
}

func encode(t testing.TB, v any) []byte {
	var b bytes.Buffer
	require.NoError(t, binary.Write(&b, binary.LittleEndian, v))
	return b.Bytes()
}
