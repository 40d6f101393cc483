// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// compiler operations fields into a program.
type compiler struct {
	trace *Trace
	prog  *program
	// inPacket is set if the program reads the packet's header or context. References to those then use the program's
	// own frame, not frame 0.
	inPacket bool
	at       position
	// run is the index of the open run's operation, or -1.
	run int
	// order is the byte order of the previous number, or NativeOrder if that depends on the packet.
	order metadata.ByteOrder
	err   error
}

// Bounds on runs: offsets in them have 32 bits.
const (
	maxRunBits  = 1 << 24
	maxRunBytes = 4096
)

// compile returns the program for the consecutive fields, which begin at a position, and the position of their end.
func (t *Trace) compile(at position, inPacket bool, roots ...*Field) (program, position, error) {
	c := compiler{trace: t, prog: &program{}, at: at, inPacket: inPacket, run: -1}
	for _, root := range roots {
		c.field(root)
		if c.err != nil {
			return program{}, at, fmt.Errorf("%s: %w", root.Scope, c.err)
		}
	}
	return *c.prog, c.at, c.err
}

// fail records the first error.
func (c *compiler) fail(f *Field, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("field %q: "+format, append([]any{f.Path()}, args...)...)
	}
}

// emit adds an operation that reads f.
func (c *compiler) emit(o op, f *Field) int {
	if err := c.trace.countWork(1); err != nil && c.err == nil {
		c.err = err
	}
	c.prog.ops = append(c.prog.ops, o)
	c.prog.fields = append(c.prog.fields, f)
	return len(c.prog.ops) - 1
}

// pc returns the index of the next operation.
func (c *compiler) pc() uint32 { return uint32(len(c.prog.ops)) }

// close ends the open run: the following fields have no known offset in it.
func (c *compiler) close() { c.run = -1 }

// align moves to the next multiple of bits.
func (c *compiler) align(bits uint64, f *Field) {
	padding, known := c.at.padding(bits)
	switch {
	case known && padding == 0:
	case known && c.run >= 0:
		c.extend(padding)
	case known:
		c.emit(op{code: opAlign, n: uint32(bits)}, f)
		c.at = c.at.plus(padding)
	default:
		c.close()
		c.emit(op{code: opAlign, n: uint32(bits)}, f)
		c.at = position{mod: bits}
	}
}

// extend extends the open run by n bits and returns their offset in the run.
func (c *compiler) extend(n uint64) uint32 {
	run := &c.prog.ops[c.run]
	begin := run.n
	run.n += uint32(n)
	c.at = c.at.plus(n)
	return begin
}

// fixed aligns and adds n bits to a run. It returns their offset in the run.
func (c *compiler) fixed(n, align uint64, f *Field) uint32 {
	c.align(align, f)
	if c.run >= 0 && c.prog.ops[c.run].n > maxRunBits {
		c.close()
	}
	if c.run < 0 {
		c.run = c.emit(op{code: opRun}, f)
	}
	return c.extend(n)
}

// field compiles a field and the fields below it.
func (c *compiler) field(f *Field) {
	if c.err != nil {
		return
	}
	switch typ := f.Type.(type) {
	case *metadata.Integer:
		c.integer(f, typ)
	case *metadata.Float:
		c.float(f, typ)
	case *metadata.String:
		c.align(8, f)
		c.close()
		c.emit(op{code: opString, bits: uint8(typ.Encoding.Unit()), slot: f.slot}, f)
		c.at = c.at.plusSome(8)
	case *metadata.Bytes:
		c.bytes(f, 8, typ.Length, typ.LengthRef != nil, false)
	case *metadata.Struct:
		c.align(typ.Alignment(), f)
		for _, m := range f.Members {
			c.field(m)
		}
	case *metadata.Array:
		c.array(f, typ)
	case *metadata.Variant:
		c.variant(f, typ)
	case *metadata.Optional:
		c.optional(f, typ)
	}
	c.roles(f)
}

// roles emits operations that pass the value of an event header's field to the reader.
func (c *compiler) roles(f *Field) {
	if f.Scope != metadata.EventHeader {
		return
	}
	if f.roles&metadata.RoleEventClass != 0 {
		c.emit(op{code: opEventClass, slot: f.slot}, f)
	}
	if f.roles&metadata.RoleClock != 0 {
		c.emit(op{code: opClock, slot: f.slot, bits: sizeOf(f)}, f)
	}
}

// sizeOf returns the size of an integer in bits, or 0 if its size is variable.
func sizeOf(f *Field) uint8 {
	if t, ok := f.Type.(*metadata.Integer); ok && !t.Variable {
		return uint8(t.Size)
	}
	return 0
}

// orderOf returns the byte order of a type in this trace.
func (t *Trace) orderOf(order metadata.ByteOrder) metadata.ByteOrder {
	if order == metadata.NativeOrder {
		return t.meta.ByteOrder
	}
	return order
}

func (c *compiler) integer(f *Field, t *metadata.Integer) {
	if t.Variable {
		c.align(8, f)
		c.close()
		code := opUintVariable
		if t.Signed {
			code = opIntVariable
		}
		c.emit(op{code: code, slot: f.slot}, f)
		c.at = c.at.plusSome(8)
		return
	}
	c.number(f, t.Size, t.Align, c.trace.orderOf(t.Order), t.Signed)
}

// number compiles a number of a fixed size.
func (c *compiler) number(f *Field, size, align uint64, order metadata.ByteOrder, signed bool) {
	n := c.fixed(size, align, f)
	begin := c.at.plus(-size)
	if !begin.atByte() && c.order != metadata.NativeOrder && c.order != order {
		c.fail(f, "expected the byte order of the field before it, which may end in the same byte")
		return
	}
	c.order = order
	code, ok := nativeCode(size, order, signed)
	if !ok || !begin.atByte() {
		code = bitsCode(order, signed)
	}
	c.emit(op{code: code, slot: f.slot, bits: uint8(size), n: n}, f)
}

// nativeCode returns the operation for a number that begins at a byte.
func nativeCode(size uint64, order metadata.ByteOrder, signed bool) (opcode, bool) {
	big := order == metadata.BigEndian
	code := opAlign
	switch {
	case size == 8:
		code = opUint8
	case size == 16 && !big:
		code = opUint16LE
	case size == 32 && !big:
		code = opUint32LE
	case size == 64 && !big:
		return opUint64LE, true
	case size == 16:
		code = opUint16BE
	case size == 32:
		code = opUint32BE
	case size == 64:
		return opUint64BE, true
	default:
		return 0, false
	}
	if signed {
		code++ // the operation with sign follows the one without
	}
	return code, true
}

// bitsCode returns the operation for a number that begins at any bit.
func bitsCode(order metadata.ByteOrder, signed bool) opcode {
	code := opUintBitsLE
	if order == metadata.BigEndian {
		code = opUintBitsBE
	}
	if signed {
		code++ // the operation with sign follows the one without
	}
	return code
}

func (c *compiler) float(f *Field, t *metadata.Float) {
	order := c.trace.orderOf(t.Order)
	c.number(f, t.Size, t.Align, order, false)
	if t.Size == 64 || c.err != nil {
		return
	}
	switch last := &c.prog.ops[len(c.prog.ops)-1]; last.code {
	case opUint32LE:
		last.code = opFloat32LE
	case opUint32BE:
		last.code = opFloat32BE
	default:
		c.emit(op{code: opWiden, slot: f.slot}, f)
	}
}

// refer sets the source of f as the source of an operation.
func (c *compiler) refer(o op, f *Field) op {
	o.frame, o.source = f.source.frame, f.source.slot
	if !c.inPacket && f.source.Scope <= metadata.PacketContext {
		o.frame = 0
	}
	return o
}

// bytes compiles text, a blob, or an array that is stored like a blob. big is the byte order of bytes that do not
// begin at a byte.
func (c *compiler) bytes(f *Field, align, length uint64, sourced, big bool) {
	c.align(align, f)
	atByte := c.at.atByte()
	if !sourced && atByte && length <= maxRunBytes {
		n := c.fixed(8*length, align, f)
		c.emit(op{code: opRange, slot: f.slot, n: n, source: uint32(length)}, f)
		return
	}
	c.close()
	o := op{code: opBytes, slot: f.slot, n: uint32(length)}
	if !atByte {
		o.code = opGather
	}
	if big {
		o.bits = 1
	}
	if sourced {
		o.code++ // the operation with a source follows the one without
		o = c.refer(o, f)
	}
	c.emit(o, f)
	if sourced {
		c.at = c.at.plusSome(8)
	} else {
		c.at = c.at.plus(8 * length)
	}
}

func (c *compiler) array(f *Field, t *metadata.Array) {
	if f.Kind != Array {
		element := t.Element.(*metadata.Integer)
		order := c.trace.orderOf(element.Order)
		c.bytes(f, t.Alignment(), t.Length, t.LengthRef != nil, order == metadata.BigEndian)
		return
	}
	c.align(t.Alignment(), f)
	c.close()
	element := f.Members[0]
	layout := arrayLayout{
		length: t.Length, sourced: t.LengthRef != nil,
		stride: f.stride, minBits: element.minBits,
	}
	o := op{code: opArray, slot: f.slot, n: uint32(len(c.prog.arrays))}
	if layout.sourced {
		o = c.refer(o, f)
	}
	c.prog.arrays = append(c.prog.arrays, layout)
	if code, size, ok := c.plainNumber(element); ok && c.at.atByte() {
		c.prog.arrays[o.n].element, c.prog.arrays[o.n].size, c.prog.arrays[o.n].operations = code, uint8(size/8), 1
		o.code = opNumbers
		c.emit(o, f)
		c.at = c.at.plusSome(size)
		return
	}
	at := c.emit(o, f)
	before := c.at
	c.at, c.order = anywhere, metadata.NativeOrder
	c.field(element)
	c.close()
	c.at, c.order = before.or(c.at), metadata.NativeOrder
	c.prog.arrays[o.n].end = c.pc()
	c.prog.arrays[o.n].operations = c.pc() - uint32(at)
}

// plainNumber returns the operation and the size of elements, if these are numbers of whole bytes without padding.
func (c *compiler) plainNumber(element *Field) (opcode, uint64, bool) {
	switch t := element.Type.(type) {
	case *metadata.Integer:
		if t.Variable || t.Size%t.Align != 0 {
			return 0, 0, false
		}
		code, ok := nativeCode(t.Size, c.trace.orderOf(t.Order), t.Signed)
		return code, t.Size, ok
	case *metadata.Float:
		code, ok := nativeCode(t.Size, c.trace.orderOf(t.Order), false)
		switch code {
		case opUint32LE:
			code = opFloat32LE
		case opUint32BE:
			code = opFloat32BE
		}
		return code, t.Size, ok && t.Size%t.Align == 0
	}
	return 0, 0, false
}

func (c *compiler) variant(f *Field, t *metadata.Variant) {
	table, signed, err := c.trace.variantTable(f, t)
	if err != nil {
		c.fail(f, "%w", err)
		return
	}
	c.selected(f, table, signed, false)
}

func (c *compiler) optional(f *Field, t *metadata.Optional) {
	table, signed := optionalTable(f, t)
	c.selected(f, table, signed, true)
}

// selected compiles the members of f, of which a selector selects one, or none if orNothing is set.
func (c *compiler) selected(f *Field, table selector, signed, orNothing bool) {
	c.close()
	o := c.refer(op{code: opSelect, slot: f.slot, signed: signed, n: uint32(len(c.prog.tables))}, f)
	c.prog.tables = append(c.prog.tables, table)
	c.emit(o, f)
	before, after, order := c.at, c.at, c.order
	targets := make([]uint32, len(f.Members))
	jumps := make([]int, 0, len(f.Members))
	for i, m := range f.Members {
		targets[i] = c.pc()
		c.at, c.order = before, order
		c.field(m)
		c.close()
		if i == 0 && !orNothing {
			after = c.at
		}
		after = after.or(c.at)
		jumps = append(jumps, c.emit(op{code: opJump}, f))
	}
	c.at, c.order = after, metadata.NativeOrder
	for _, j := range jumps {
		c.prog.ops[j].n = c.pc()
	}
	for i := range table.spans {
		table.spans[i].target = targets[table.spans[i].option]
	}
	if orNothing {
		c.prog.tables[o.n].otherwise = int32(c.pc())
	}
}
