// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import "errors"

// Attributes and forms of DWARF 2 to 5 (DWARF 5, tables 7.5 and 7.6) that the first entry of a unit can have.
const (
	atStmtList = 0x10
	atCompDir  = 0x1b

	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUStrpAlt    = 0x1f21
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
	found := directories{}
	if !s.Info.Exists() || !s.Abbrev.Exists() {
		return found, nil
	}
	abbreviations, err := s.Abbrev.whole(b)
	if err != nil {
		return found, err
	}
	u := newUnits(s.Info, unitBytes)
	last := ""
	for n := 0; u.at < s.Info.Size; n++ {
		if n == maxUnits {
			return found, ErrLimit
		}
		data, _ := u.reader.Peek(int(min(unitBytes, s.Info.Size-u.at)))
		c := cursor{data: data, order: s.Order}
		length := c.unitLength()
		if c.failed || length > uint64(s.Info.Size) {
			return found, errors.New("a unit of .debug_info ends outside the section")
		}
		next := u.at + int64(c.at) + int64(length)
		program, directory, err := s.firstEntry(&c, abbreviations, str, lineStr, b)
		if err != nil {
			return found, err
		}
		if directory != nil {
			if last != string(directory) {
				if err := b.spend(keptCost * int64(len(directory))); err != nil {
					return found, err
				}
				last = string(directory)
			}
			found[program] = last
		}
		if err := errors.Join(b.spend(int64(c.at)), u.skipTo(next, b)); err != nil {
			return found, err
		}
	}
	return found, nil
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

// skip skips a value. Of an unknown form, it fails.
func (c *cursor) skip(form uint64, addressSize int) {
	switch form {
	case formFlagPresent, formImplicitConst:
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		c.bytes(1)
	case formData2, formRef2, formStrx2, formAddrx2:
		c.bytes(2)
	case formStrx3, formAddrx3:
		c.bytes(3)
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		c.bytes(4)
	case formData8, formRef8, formRefSig8, formRefSup8:
		c.bytes(8)
	case formData16:
		c.bytes(16)
	case formAddr:
		c.bytes(uint64(addressSize))
	case formStrp, formSecOffset, formStrpSup, formLineStrp, formGNUStrpAlt:
		c.offset()
	case formSdata, formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
		c.uleb()
	case formString:
		c.text()
	case formBlock1:
		c.bytes(uint64(c.u8()))
	case formBlock2:
		c.bytes(uint64(c.u16()))
	case formBlock4:
		c.bytes(uint64(c.u32()))
	case formBlock, formExprloc:
		c.bytes(c.uleb())
	default:
		c.failed = true
	}
}
