// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"errors"
	"fmt"
	"math"
	"path"
)

// Opcodes of line programs (DWARF 5, tables 7.25 and 7.26).
const (
	lnsExtended       = 0
	lnsCopy           = 1
	lnsAdvancePC      = 2
	lnsAdvanceLine    = 3
	lnsSetFile        = 4
	lnsSetColumn      = 5
	lnsNegateStmt     = 6
	lnsSetBasicBlock  = 7
	lnsConstAddPC     = 8
	lnsFixedAdvancePC = 9

	lneEndSequence = 1
	lneSetAddress  = 2
	lneDefineFile  = 3
)

// Parts of an entry of a directory or file of DWARF 5 (table 7.27).
const (
	lnctPath           = 1
	lnctDirectoryIndex = 2
)

// program is one program of .debug_line, a unit's line table.
type program struct {
	cursor
	// begin is the program's offset in .debug_line.
	begin   uint64
	version uint16

	minInstruction uint64
	lineBase       int8
	lineRange      uint8
	// opcodeLengths are the numbers of arguments of the standard opcodes, without the first byte for opcode 0.
	opcodeLengths []byte

	directories []textRef
	files       []sourceFile
}

// maxFiles is the maximum number of files of a program, and of directories. Programs of whole libraries that were
// optimised at link time have some ten thousand.
const maxFiles = 1 << 18

// sourceFile is a file of a program.
type sourceFile struct {
	name      textRef
	directory uint64
	// path is the number of its path, noPath, or 0 if it was not needed before.
	path uint32
}

// noPath is the number of an unknown path, or of one that is too long.
const noPath = math.MaxUint32

// readHeader reads the header. The cursor is behind the unit's length, and is at the first opcode afterwards.
func (p *program) readHeader() error {
	p.version = p.u16()
	if p.version < 2 || p.version > 5 {
		return fmt.Errorf("expected a line table of version 2 to 5, got %d", p.version)
	}
	if p.version >= 5 {
		p.u8() // size of addresses
		p.u8() // size of segments
	}
	length := p.offset()
	if length > uint64(len(p.data)-p.at) {
		return fmt.Errorf("expected a header of at most %d bytes, got %d", len(p.data)-p.at, length)
	}
	opcodes := p.at + int(length)
	p.minInstruction = uint64(p.u8())
	if p.version >= 4 {
		if most := p.u8(); most != 1 {
			return fmt.Errorf("expected 1 operation in each instruction, got %d", most)
		}
	}
	p.u8() // default_is_stmt
	p.lineBase, p.lineRange = int8(p.u8()), p.u8()
	opcodeBase := p.u8()
	if p.failed || p.lineRange == 0 || opcodeBase == 0 {
		return fmt.Errorf("expected a line range and an opcode base of at least 1, got %d and %d", p.lineRange, opcodeBase)
	}
	p.opcodeLengths = p.bytes(uint64(opcodeBase) - 1)
	if p.version >= 5 {
		p.readEntries(func(t textRef, _ uint64) { p.directories = append(p.directories, t) })
		p.readEntries(func(t textRef, directory uint64) {
			p.files = append(p.files, sourceFile{name: t, directory: directory})
		})
	} else {
		p.readLists()
	}
	if p.failed || p.at > opcodes {
		return errors.New("expected lists of directories and files that end inside the header")
	}
	p.at = opcodes
	return nil
}

// readLists reads the directories and files of DWARF 2 to 4. The first directory is that of the compilation.
func (p *program) readLists() {
	p.directories = append(p.directories, textRef{})
	for len(p.directories) <= maxFiles {
		name := p.cursor.text()
		if len(name) == 0 {
			break
		}
		p.directories = append(p.directories, textRef{form: formString, inline: name})
	}
	p.files = append(p.files, sourceFile{}) // they are numbered from 1
	for p.readFile() {
	}
}

// readFile reads a file of DWARF 2 to 4. It returns false at the end of the list.
func (p *program) readFile() bool {
	name := p.cursor.text()
	if len(name) == 0 {
		return false
	}
	if len(p.files) > maxFiles {
		p.failed = true
		return false
	}
	p.files = append(p.files, sourceFile{name: textRef{form: formString, inline: name}, directory: p.uleb()})
	p.uleb() // time
	p.uleb() // size
	return !p.failed
}

// readEntries reads the directories or the files of DWARF 5.
func (p *program) readEntries(add func(path textRef, directory uint64)) {
	type part struct{ content, form uint64 }
	parts := make([]part, p.u8())
	for i := range parts {
		parts[i] = part{p.uleb(), p.uleb()}
	}
	count := p.uleb()
	if p.failed || count > maxFiles || len(parts) == 0 && count > 0 {
		p.failed = true
		return
	}
	for range count {
		var path textRef
		var directory uint64
		for _, part := range parts {
			switch {
			case part.content == lnctPath && part.form == formString:
				path = textRef{form: formString, inline: p.cursor.text()}
			case part.content == lnctPath && (part.form == formStrp || part.form == formLineStrp):
				path = textRef{form: part.form, offset: p.offset()}
			case part.content == lnctDirectoryIndex && part.form == formData1:
				directory = uint64(p.u8())
			case part.content == lnctDirectoryIndex && part.form == formData2:
				directory = uint64(p.u16())
			case part.content == lnctDirectoryIndex && part.form == formUdata:
				directory = p.uleb()
			case part.form == formFlagPresent || part.form == formImplicitConst || part.form == formAddr:
				p.failed = true // a value without bytes, or one whose size the program does not state
			default:
				p.skip(part.form, 0)
			}
		}
		if p.failed {
			return
		}
		add(path, directory)
	}
}

// run runs the program, and finds the rows of functions' first addresses.
func (p *program) run(result *found) error {
	highest := uint64(math.MaxUint64)
	if result.sections.AddressSize == 4 {
		highest = math.MaxUint32
	}
	opcodeBase := uint8(len(p.opcodeLengths) + 1)
	constAdd := uint64((255-opcodeBase)/p.lineRange) * p.minInstruction
	address, file, line, next := uint64(0), uint64(1), int64(1), newSequence
	done := -1 // the index of the last start with a row in this sequence
	for p.at < len(p.data) {
		op := p.u8()
		isRow := false
		switch {
		case op >= opcodeBase:
			op -= opcodeBase
			address += uint64(op/p.lineRange) * p.minInstruction
			line += int64(p.lineBase) + int64(op%p.lineRange)
			isRow = true
		case op == lnsExtended:
			length := p.uleb()
			if length == 0 || length > uint64(len(p.data)-p.at) {
				return fmt.Errorf("expected an extended opcode of 1 to %d bytes, got %d", len(p.data)-p.at, length)
			}
			end := p.at + int(length)
			switch p.u8() {
			case lneEndSequence:
				address, file, line, next = 0, 1, 1, newSequence
			case lneSetAddress:
				switch length - 1 {
				case 4:
					address = uint64(p.u32())
				case 8:
					address = p.u64()
				default:
					return fmt.Errorf("expected an address of 4 or 8 bytes, got %d", length-1)
				}
			case lneDefineFile:
				if p.version < 5 {
					p.readFile()
				}
			}
			p.at = end
		case op == lnsCopy:
			isRow = true
		case op == lnsAdvancePC:
			address += p.uleb() * p.minInstruction
		case op == lnsAdvanceLine:
			line += p.sleb()
		case op == lnsSetFile:
			file = p.uleb()
		case op == lnsSetColumn:
			p.uleb()
		case op == lnsNegateStmt, op == lnsSetBasicBlock:
		case op == lnsConstAddPC:
			address += constAdd
		case op == lnsFixedAdvancePC:
			address += uint64(p.u16())
		default:
			for range p.opcodeLengths[op-1] {
				p.uleb()
			}
		}
		if p.failed {
			return errors.New("expected arguments of an opcode, got the end of the line table")
		}
		if !isRow || next == removedCode {
			continue
		}
		if next == newSequence {
			if address == 0 || address >= highest-1 {
				next = removedCode
				continue
			}
			next, done = 0, -1
		}
		// Nearly all rows end here.
		if next == len(result.starts) || address < result.starts[next] && (next == 0 || address > result.starts[next-1]) {
			continue
		}
		if err := result.budget.spend(searchCost); err != nil {
			return err
		}
		var isStart bool
		if next, isStart = result.search(address); !isStart || next == done || line <= 0 || line > math.MaxInt32 {
			continue
		}
		done = next
		if err := p.setPlace(result, next, file, uint32(line)); err != nil {
			return err
		}
	}
	return nil
}

const (
	// newSequence: the next row is the first of a sequence.
	newSequence = -1
	// removedCode: the sequence has an address that the linker writes for code that it removed.
	removedCode = -2
)

// setPlace sets the place of a start, or makes it ambiguous if another sequence has a row with another line. Rows with
// the same line are mostly those of an inline function in several units, so their files are not compared.
func (p *program) setPlace(result *found, start int, file uint64, line uint32) error {
	place := &result.places[start]
	if place.Line > 0 && place.Line != line {
		*place = Place{File: ambiguous}
	}
	if *place != (Place{}) {
		return nil
	}
	number, err := p.pathOf(file, result)
	if err == nil && number != noPath {
		*place = Place{File: number, Line: line}
	}
	return err
}

// pathOf returns the number of a file's path, or noPath.
func (p *program) pathOf(file uint64, result *found) (uint32, error) {
	if file >= uint64(len(p.files)) {
		return noPath, nil
	}
	f := &p.files[file]
	if f.path > 0 {
		return f.path, nil
	}
	f.path = noPath
	name, err := p.nameOf(f, result)
	if err != nil || name == "" || len(name) > maxTextBytes {
		return noPath, err
	}
	f.path, err = result.pathNumber(path.Clean(name))
	return f.path, err
}

// nameOf returns a file's path before it is cleaned, at most a few bytes longer than maxTextBytes, or "" if it is unknown.
func (p *program) nameOf(f *sourceFile, result *found) (string, error) {
	name, err := result.textOf(f.name)
	if err != nil || name == "" {
		return "", err
	}
	// 1. The directory of the file. 2. That of the compilation, number 0.
	for _, directory := range []uint64{f.directory, 0} {
		if path.IsAbs(name) || directory >= uint64(len(p.directories)) {
			continue
		}
		var parent string
		if directory == 0 && p.version < 5 {
			parent, err = result.compilationDirectory(p.begin)
		} else {
			parent, err = result.textOf(p.directories[directory])
		}
		if err != nil {
			return "", err
		}
		length := len(parent) + len(name)
		if err := result.budget.spend(int64(length)); err != nil || length > maxTextBytes {
			return "", err
		}
		name = path.Join(parent, name)
		if f.directory == 0 {
			break
		}
	}
	return name, nil
}
