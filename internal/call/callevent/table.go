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

// memory is about how many bytes the table holds, where an entry of its index takes so
// many times what its fixed part takes.
func (t *table[K]) memory(times int) int { return (1+times)*cap(t.fixed) + cap(t.strings) }

func (t *table[K]) reset() {
	clear(t.index)
	t.fixed, t.strings = t.fixed[:0], t.strings[:0]
}

// functionTable is the batch's table of functions, and what is known of functions beyond a
// batch, so that entering one again is nothing but copying.
type functionTable struct {
	known map[*Function]*knownFunction
	// knownBytes is about what known keeps in memory, the functions' own strings included.
	knownBytes int
	// entries is how many are in the table.
	entries        int
	fixed, strings []byte
}

// knownFunction is what a function is in a table.
type knownFunction struct {
	// generation is that of the last batch that it was entered into, index its index there.
	generation uint32
	index      uint16
	fixed      [functionSize]byte
	// names are its strings as they can stand in a batch.
	names [4]string
}

const (
	// maxKnownBytes bounds what is known beyond a batch: a caller may have forgotten those
	// functions.
	maxKnownBytes = 4 << 20
	// knownFunctionBytes is what a function takes there beside its strings, its place in
	// the map included.
	knownFunctionBytes = 160
)

func (t *functionTable) bytes() int { return len(t.fixed) + len(t.strings) }

func (t *functionTable) reset() {
	if t.knownBytes > maxKnownBytes {
		clear(t.known)
		t.knownBytes = 0
	}
	t.entries, t.fixed, t.strings = 0, t.fixed[:0], t.strings[:0]
}

// size is how many bytes f takes in a table.
func (f *knownFunction) size() int {
	return functionSize + len(f.names[0]) + len(f.names[1]) + len(f.names[2]) + len(f.names[3])
}

// know gives what f is in a table.
func (t *functionTable) know(f *Function) *knownFunction {
	known := &knownFunction{names: [4]string{name(f.Qualified), name(f.Display), name(f.Text), name(f.File)}}
	for i, s := range known.names {
		binary.LittleEndian.PutUint32(known.fixed[4*i:], uint32(len(s)))
	}
	binary.LittleEndian.PutUint32(known.fixed[16:], f.Line)
	t.known[f] = known
	t.knownBytes += knownFunctionBytes + len(f.Qualified) + len(f.Display) + len(f.Text) + len(f.File)
	return known
}

// Function gives the index of f in the batch's table. A caller keeps one
// *Function for each function, which doesn't change: it is entered once for
// each pointer. It reports false when the batch is full.
func (p *Packer) Function(f *Function) (uint16, bool) {
	t := &p.functions
	known := t.known[f]
	if known == nil {
		known = t.know(f)
	} else if known.generation == p.generation {
		return known.index, true
	}
	if !p.makeRoom(t.entries, known.size()) {
		return 0, false
	}
	known.generation, known.index = p.generation, uint16(t.entries)
	t.entries++
	t.fixed = append(t.fixed, known.fixed[:]...)
	for _, s := range known.names {
		t.strings = append(t.strings, s...)
	}
	return known.index, true
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
	if !p.makeRoom(n, size) {
		return 0, false
	}
	t.index[key] = uint16(n)
	return uint16(n), true
}

// makeRoom takes size bytes of the batch for the next entry of a table of n, if the table
// can have one more, and the batch has room for it and for an event that uses it.
func (p *Packer) makeRoom(n, size int) bool {
	if p.closed || n >= maxIndexes || p.size()+size+eventSize > p.maxBytes {
		return false
	}
	p.room -= size
	return true
}
