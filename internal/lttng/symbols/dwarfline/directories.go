// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import "errors"

// Attributes of a unit (DWARF 5, table 7.5).
const (
	atStmtList = 0x10
	atCompDir  = 0x1b
)

// Types of units of DWARF 5 (table 7.2).
const (
	unitCompile  = 1
	unitPartial  = 3
	unitSkeleton = 4
)

const (
	// maxUnits is the maximum number of units of .debug_info. Chromium has 30,000.
	maxUnits = 1 << 20
	// unitBytes is enough for the header of a unit and its first entry.
	unitBytes = 8 << 10
)

// directories are the compilation directories (DW_AT_comp_dir) of a file's units, by the offset of their line program.
// Only line programs before DWARF 5 need them.
type directories map[uint64]string

// readDirectories reads the first entry of each unit of .debug_info. Unknown units have no directory.
func readDirectories(s *Sections, str, lineStr *texts, b *budget) (directories, error) {
	all := directories{}
	if !s.Info.Exists() || !s.Abbrev.Exists() {
		return all, nil
	}
	abbreviations, err := s.Abbrev.whole(b)
	if err != nil {
		return all, err
	}
	u := newUnits(s.Info, unitBytes)
	last := ""
	for n := 0; u.at < s.Info.Size; n++ {
		if n == maxUnits {
			return all, ErrLimit
		}
		data, _ := u.reader.Peek(int(min(unitBytes, s.Info.Size-u.at)))
		c := cursor{data: data, order: s.Order}
		length := c.unitLength()
		if c.failed || length > uint64(s.Info.Size) {
			return all, errors.New("a unit of .debug_info ends outside the section")
		}
		next := u.at + int64(c.at) + int64(length)
		program, directory, err := s.firstEntry(&c, abbreviations, str, lineStr, b)
		if err != nil {
			return all, err
		}
		if directory != nil {
			if last != string(directory) {
				if err := b.spend(keptCost * int64(len(directory))); err != nil {
					return all, err
				}
				last = string(directory)
			}
			all[program] = last
		}
		if err := errors.Join(b.spend(int64(c.at)), u.skipTo(next, b)); err != nil {
			return all, err
		}
	}
	return all, nil
}

// firstEntry returns the offset of a unit's line program and its compilation directory, which is nil if it is unknown.
// c is behind the unit's length. The error is that of the budget or of the file.
func (s *Sections) firstEntry(c *cursor, abbreviations []byte, str, lineStr *texts, b *budget) (program uint64, directory []byte, err error) {
	var table uint64
	switch version := c.u16(); {
	case 2 <= version && version <= 4:
		table = c.offset()
		c.u8() // size of addresses
	case version == 5:
		kind := c.u8()
		if kind != unitCompile && kind != unitPartial && kind != unitSkeleton {
			return 0, nil, nil
		}
		c.u8()
		table = c.offset()
		if kind == unitSkeleton {
			c.u64() // dwo_id
		}
	default:
		return 0, nil, nil
	}
	attributes := abbreviation(abbreviations, table, c.uleb())
	defer func() {
		if err == nil {
			err = b.spend(int64(attributes.at))
		}
	}()
	hasProgram := false
	for !attributes.failed && !c.failed {
		name, form := attributes.uleb(), attributes.uleb()
		switch {
		case name == 0 && form == 0:
			if !hasProgram {
				directory = nil
			}
			return program, directory, nil
		case name == atStmtList && (form == formSecOffset || form == formData4 || form == formData8):
			hasProgram = true
			switch form {
			case formSecOffset:
				program = c.offset()
			case formData4:
				program = uint64(c.u32())
			case formData8:
				program = c.u64()
			}
		case name == atCompDir && form == formString:
			directory = c.text()
		case name == atCompDir && (form == formStrp || form == formLineStrp):
			from := str
			if form == formLineStrp {
				from = lineStr
			}
			if directory, err = from.text(c.offset(), b); err != nil {
				return 0, nil, err
			}
		case form == formImplicitConst:
			attributes.sleb()
		default:
			c.skip(form, s.AddressSize)
		}
	}
	return 0, nil, nil
}

// abbreviation returns the attributes of a code in a table of abbreviations. The cursor has failed if there are none.
func abbreviation(tables []byte, table, code uint64) cursor {
	if table > uint64(len(tables)) {
		return cursor{failed: true}
	}
	c := cursor{data: tables[table:]}
	for {
		got := c.uleb()
		if c.failed || got == 0 {
			c.failed = true
			return c
		}
		c.uleb() // tag
		c.u8()   // has children
		if got == code {
			return c
		}
		for !c.failed {
			name, form := c.uleb(), c.uleb()
			if form == formImplicitConst {
				c.sleb()
			}
			if name == 0 && form == 0 {
				break
			}
		}
	}
}
