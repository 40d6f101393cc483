// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// Expectations of errors for several places.
const (
	expectedID    = "the ID of an object"
	expectedClass = "the name of a class"
	expectedSize  = "the size of an object"
	expectedStack = "the ID of a stack"
	expectedCount = "a count"
	expectedFile  = "the name of a file"
	expectedLine  = "the number of a line"
)

// listed reads n elements with read, and returns their bytes.
func (c *cursor) listed(n int, read func(*cursor)) list {
	begin := c.at
	for range n {
		if read(c); c.err != nil {
			return list{}
		}
	}
	return list{n: n, raw: c.message[begin:c.at]}
}

// references reads a list of IDs. It has its own loop, because dumps have many references.
func (c *cursor) references() References {
	if c.null() {
		return References{}
	}
	n := c.array("references: an array")
	begin, at := c.at, c.at
	for left := n; left > 0; left-- {
		if usual := usualIDs(c.message[at:], left); usual > 0 {
			at += usual * sizeUint32
			if left -= usual; left == 0 {
				break
			}
		}
		c.at = at
		if c.number(expectedID); c.err != nil {
			return References{}
		}
		at = c.at
	}
	c.at = at
	return References{list{n: n, raw: c.message[begin:at]}}
}

// usualIDs returns how many of the first n IDs have 32 bits, as nearly all have, up to the first
// other one.
func usualIDs(b []byte, n int) (usual int) {
	// Four at a time.
	for ; n-usual >= 4 && len(b) >= 4*sizeUint32; usual += 4 {
		if b[0] != firstUint32 || b[sizeUint32] != firstUint32 || b[2*sizeUint32] != firstUint32 || b[3*sizeUint32] != firstUint32 {
			break
		}
		b = b[4*sizeUint32:]
	}
	for ; usual < n && len(b) >= sizeUint32 && b[0] == firstUint32; usual++ {
		b = b[sizeUint32:]
	}
	return usual
}

// usualCreated reads a created object into o, if it has the encoding of all servers: the ID and
// the class.
func (c *cursor) usualCreated(o *Object) bool {
	begin := c.at
	if c.follows(firstMap|2) && c.follows(fieldID) {
		o.ID = c.number(expectedID)
		if c.follows(fieldClass) {
			o.Class = c.text(expectedClass)
			return true
		}
	}
	c.at = min(begin, len(c.message))
	return false
}

// usualDumped reads a dumped object with all its properties in the usual encoding. It leaves any
// other to object, which reads it again from its begin.
func (c *cursor) usualDumped(o *Object) bool {
	const (
		head     = 8 // up to the class
		headBits = 0xff_ff_ff_00_00_00_00_ff
		usual    = (firstMap|6)<<56 | fieldID<<48 | firstUint32<<40 | fieldClass
	)
	b := c.message[c.at:]
	if len(b) < head {
		return false
	}
	first := binary.BigEndian.Uint64(b)
	if first&headBits != usual {
		return false
	}
	o.ID = first >> 8 & math.MaxUint32
	var at int
	if o.Class, at = usualText(b, head); at == 0 || at >= len(b) || b[at] != fieldReferences {
		return false
	}
	n, begin := usualCount(b, at+1)
	at = begin + n*sizeUint32
	if begin == 0 || at >= len(b) || b[at] != fieldFile || usualIDs(b[begin:at], n) < n {
		return false
	}
	o.References = References{list{n: n, raw: b[begin:at]}}
	if o.File, at = usualText(b, at+1); at == 0 || at+1 >= len(b) || b[at] != fieldLine {
		return false
	}
	if at++; b[at] == firstNil {
		o.Line, at = 0, at+1
	} else if o.Line, at = usualNumber(b, at); at == 0 {
		return false
	}
	if at >= len(b) || b[at] != fieldSize {
		return false
	}
	if o.Size, at = usualNumber(b, at+1); at == 0 {
		return false
	}
	o.Sized = true
	c.at += at
	return true
}

// object reads a created, destroyed or dumped object into o, with any fields in any order.
func (c *cursor) object(o *Object) {
	*o = Object{}
	hasID := false
	for range c.mapping("an object: a map") {
		switch c.key() {
		case fieldID:
			o.ID = c.number(expectedID)
			hasID = true
		case fieldClass:
			o.Class = c.text(expectedClass)
		case fieldReferences:
			o.References = c.references()
		case fieldFile:
			o.File = c.text(expectedFile)
		case fieldLine:
			o.Line = c.line()
		case fieldSize:
			o.Size, o.Sized = c.number(expectedSize), true
		default:
			c.skip()
		}
		if c.err != nil {
			return
		}
	}
	if !hasID {
		c.fail(Missing, "an object with an ID", "none")
	}
}

// line reads a line; nil is 0.
func (c *cursor) line() uint64 {
	if c.null() {
		return 0
	}
	return c.number(expectedLine)
}

// frames reads a stack.
func (c *cursor) frames() Frames {
	return Frames{c.listed(c.array("frames: an array"), func(c *cursor) { c.frame() })}
}

func (c *cursor) frame() (f Frame) {
	if c.usualFrame(&f) {
		return f
	}
	return c.anyFrame()
}

// usualFrame reads a frame into f, if it has the encoding of all servers. Only label and thread
// may be missing. It leaves any other frame to anyFrame.
func (c *cursor) usualFrame(f *Frame) bool {
	b := c.message[c.at:]
	if len(b) < 2 || b[0]&^firstMapBits != firstMap || b[1] != fieldMethod {
		return false
	}
	fields, at := b[0]&firstMapBits, 2
	if f.Method, at = usualText(b, at); at == 0 || at >= len(b) {
		return false
	}
	if b[at] == fieldLabel {
		fields--
		if f.Label, at = usualText(b, at+1); at == 0 || at >= len(b) {
			return false
		}
	}
	if b[at] != fieldFile {
		return false
	}
	if f.File, at = usualText(b, at+1); at == 0 || at >= len(b) || b[at] != fieldLine {
		return false
	}
	if f.Line, at = usualNumber(b, at+1); at == 0 || at+2 > len(b) || b[at] != fieldSingleton || b[at+1] > 1 {
		return false
	}
	f.Singleton = b[at+1] == 1
	at += 2
	f.Encoded = b[1:at:at]
	if fields == 5 {
		fields--
		if at >= len(b) || b[at] != fieldThread {
			return false
		}
		if f.Thread, at = usualNumber(b, at+1); at == 0 {
			return false
		}
	}
	if fields != 4 {
		return false
	}
	c.at += at
	return true
}

// anyFrame reads a frame with any fields in any order.
func (c *cursor) anyFrame() (f Frame) {
	for range c.mapping("a frame: a map") {
		switch c.key() {
		case fieldMethod:
			f.Method = c.text("the name of a method")
		case fieldLabel:
			f.Label = c.text("a label")
		case fieldFile:
			f.File = c.text(expectedFile)
		case fieldLine:
			f.Line = c.line()
		case fieldSingleton:
			f.Singleton = c.flag()
		case fieldThread:
			f.Thread = c.number("the ID of a thread")
		default:
			c.skip()
		}
		if c.err != nil {
			return Frame{}
		}
	}
	return f
}

// flag reads 0 or 1, or a bool.
func (c *cursor) flag() bool {
	if msgp.NextType(c.rest()) == msgp.BoolType {
		is, rest, err := msgp.ReadBoolBytes(c.rest())
		if err == nil {
			c.moveToRest(rest)
			return is
		}
	}
	return c.number("0 or 1") != 0
}

// stats reads the result of GC.stat.
func (c *cursor) stats() Stats {
	return Stats{c.listed(c.mapping("statistics: a map"), func(c *cursor) { c.stat() })}
}

// stat reads a name and a number. ok is false for another type, as for "", the value of
// statistics that a Ruby doesn't have.
func (c *cursor) stat() (name []byte, number Number, ok bool) {
	if t := msgp.NextType(c.rest()); t != msgp.StrType && t != msgp.BinType {
		c.skip()
		c.skip()
		return nil, Number{}, false
	}
	name = c.text("the name of a number")
	var rest []byte
	var err error
	switch msgp.NextType(c.rest()) {
	case msgp.IntType, msgp.UintType:
		if number.Integer, rest, err = msgp.ReadInt64Bytes(c.rest()); err != nil {
			var u uint64
			u, rest, err = msgp.ReadUint64Bytes(c.rest())
			number = Number{Float: float64(u), IsFloat: true}
		}
	case msgp.Float64Type, msgp.Float32Type:
		number.IsFloat = true
		number.Float, rest, err = msgp.ReadFloat64Bytes(c.rest())
	default:
		c.skip()
		return nil, Number{}, false
	}
	if err != nil {
		c.failAsMsgp("a number", err)
		return nil, Number{}, false
	}
	c.moveToRest(rest)
	return name, number, true
}

// snapshot reads an allocation snapshot.
func (c *cursor) snapshot() (s Snapshot) {
	for range c.mapping("a snapshot: a map") {
		switch c.key() {
		case fieldStacks:
			if !c.null() {
				s.stacks = c.listed(c.mapping("stacks: a map"), func(c *cursor) { c.stack() })
			}
		case fieldAllocations:
			if !c.null() {
				s.allocations = c.listed(c.mapping("files: a map"), func(c *cursor) {
					c.file(func(Allocation) bool { return true })
				})
			}
		default:
			c.skip()
		}
		if c.err != nil {
			return Snapshot{}
		}
	}
	return s
}

func (c *cursor) stack() (id uint64, frames Frames) {
	id = c.number(expectedStack)
	return id, c.frames()
}

// file reads the allocations of a file and yields each, until yield returns false.
func (c *cursor) file(yield func(Allocation) bool) (more bool) {
	file := c.text(expectedFile)
	for range c.mapping("the allocations of a file: a map") {
		a := c.allocation()
		if a.File = file; c.err != nil || !yield(a) {
			return false
		}
	}
	return c.err == nil
}

// allocation reads an allocation, without its file.
func (c *cursor) allocation() (a Allocation) {
	a.Line, a.Class, a.Size = c.place()
	for range c.mapping("an allocation: a map") {
		switch c.key() {
		case fieldCount:
			a.Count = c.number(expectedCount)
		case fieldStacks:
			if !c.null() {
				a.Stacks = StackCounts{c.listed(c.mapping("counts of stacks: a map"), func(c *cursor) {
					c.number(expectedStack)
					c.number(expectedCount)
				})}
			}
		default:
			c.skip()
		}
		if c.err != nil {
			return Allocation{}
		}
	}
	return a
}

// place reads "LINE CLASS SIZE". The class may have spaces.
func (c *cursor) place() (line uint64, class []byte, size uint64) {
	const expected = `"LINE CLASS SIZE"`
	before := *c
	text := c.text(expected)
	first, last := bytes.IndexByte(text, ' '), bytes.LastIndexByte(text, ' ')
	if c.err == nil && first < last {
		var badLine, badSize error
		line, badLine = strconv.ParseUint(string(text[:first]), 10, 64)
		size, badSize = strconv.ParseUint(string(text[last+1:]), 10, 64)
		if badLine == nil && badSize == nil {
			if class = text[first+1 : last]; string(class) == hiddenClass {
				class = nil
			}
			return line, class, size
		}
	}
	if c.err == nil {
		*c = before // the error is at the begin of the text
		c.fail(WrongValue, expected, fmt.Sprintf("%.64q", text))
	}
	return 0, nil, 0
}
