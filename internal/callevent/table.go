// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import "encoding/binary"

// table is a table of the batch: its entries' fixed parts, their strings, and
// which entry has which index.
type table[K comparable] struct {
	index   map[K]uint16
	fixed   []byte
	strings []byte
}

func (t *table[K]) bytes() int { return len(t.fixed) + len(t.strings) }

func (t *table[K]) reset() {
	clear(t.index)
	t.fixed, t.strings = t.fixed[:0], t.strings[:0]
}

// Function gives the index of f in the batch's table. A caller keeps one
// *Function for each function, which doesn't change: it is entered once for
// each pointer. It reports false when the batch is full.
func (p *Packer) Function(f *Function) (uint16, bool) {
	if i, ok := p.functions.index[f]; ok {
		return i, true
	}
	names := [4]string{name(f.Qualified), name(f.Display), name(f.Text), name(f.File)}
	i, ok := enter(p, &p.functions, f, functionSize+len(names[0])+len(names[1])+len(names[2])+len(names[3]))
	if !ok {
		return 0, false
	}
	t := &p.functions
	for _, s := range names {
		t.fixed = binary.LittleEndian.AppendUint32(t.fixed, uint32(len(s)))
		t.strings = append(t.strings, s...)
	}
	t.fixed = binary.LittleEndian.AppendUint32(t.fixed, f.Line)
	return i, true
}

// Lane gives the index of l in the batch's table, or false when the batch is full.
func (p *Packer) Lane(l Lane) (uint16, bool) {
	l.Name = kept(l.Name)
	if i, ok := p.lanes.index[l]; ok {
		return i, true
	}
	s := name(l.Name)
	i, ok := enter(p, &p.lanes, l, laneSize+len(s))
	if !ok {
		return 0, false
	}
	t := &p.lanes
	t.fixed = binary.LittleEndian.AppendUint64(t.fixed, l.ID)
	t.fixed = binary.LittleEndian.AppendUint32(t.fixed, uint32(len(s)))
	t.strings = append(t.strings, s...)
	return i, true
}

// Exception gives what stands for the exception type in events, which is never
// 0, or false when the batch is full.
func (p *Packer) Exception(exception string) (uint16, bool) {
	exception = kept(exception)
	if i, ok := p.exceptions.index[exception]; ok {
		return i + 1, true
	}
	s := name(exception)
	i, ok := enter(p, &p.exceptions, exception, exceptionSize+len(s))
	if !ok {
		return 0, false
	}
	t := &p.exceptions
	t.fixed = binary.LittleEndian.AppendUint32(t.fixed, uint32(len(s)))
	t.strings = append(t.strings, s...)
	return i + 1, true
}

// value gives the index of v in the batch's table, or false when the batch is full.
func (p *Packer) value(v Value) (uint16, bool) {
	v.text = kept(v.text)
	if i, ok := p.values.index[v]; ok {
		return i, true
	}
	s, bits := name(v.text), v.bits
	if v.kind == ValueString {
		bits = uint64(len(s))
	}
	i, ok := enter(p, &p.values, v, valueSize+len(s))
	if !ok {
		return 0, false
	}
	t := &p.values
	t.fixed = binary.LittleEndian.AppendUint32(t.fixed, uint32(v.kind))
	t.fixed = binary.LittleEndian.AppendUint64(t.fixed, bits)
	t.strings = append(t.strings, s...)
	return i, true
}

// enter gives key the next index of t, if the table has one and the batch has
// room for size bytes and for an event that uses them.
func enter[K comparable](p *Packer, t *table[K], key K, size int) (uint16, bool) {
	n := len(t.index)
	if p.closed || n >= maxIndexes || p.size()+size+eventSize > p.maxBytes {
		return 0, false
	}
	t.index[key] = uint16(n)
	p.room -= size
	return uint16(n), true
}
