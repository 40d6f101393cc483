// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import "encoding/binary"

// table is a table of the batch: the fixed parts and the strings of its entries, and the index of
// each entry.
type table[K comparable] struct {
	index   map[K]uint16
	fixed   []byte
	strings []byte
}

func (t *table[K]) bytes() int { return len(t.fixed) + len(t.strings) }

// memory is about the memory of the table in bytes. An entry of its map uses so many times the
// bytes of its fixed part.
func (t *table[K]) memory(times int) int { return (1+times)*cap(t.fixed) + cap(t.strings) }

func (t *table[K]) reset() {
	clear(t.index)
	t.fixed, t.strings = t.fixed[:0], t.strings[:0]
}

// functionTable is the batch's table of functions. known has functions of earlier batches too, so
// that entering one again only copies bytes.
type functionTable struct {
	known map[*Function]*knownFunction
	// knownBytes is about the memory of known, with the functions' own strings.
	knownBytes int
	// entries is the number of entries in the table.
	entries        int
	fixed, strings []byte
}

// knownFunction is a function in the form of its entry in the table.
type knownFunction struct {
	// generation is that of the last batch that it was entered into, index its index there.
	generation uint32
	index      uint16
	fixed      [functionSize]byte
	// names are its strings as valid UTF-8 of at most MaxNameBytes.
	names [4]string
}

const (
	// maxKnownBytes bounds the memory of known, because the caller may not use these functions any
	// more.
	maxKnownBytes = 4 << 20
	// knownFunctionBytes is the memory of a function beside its strings, with its place in the map.
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

// size is the size of f in a table, in bytes.
func (f *knownFunction) size() int {
	return functionSize + len(f.names[0]) + len(f.names[1]) + len(f.names[2]) + len(f.names[3])
}

// know adds f to the known functions.
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

// Function returns the index of f in the batch's table. A caller has one *Function for each
// function, and does not change it: the table has an entry for each pointer. It reports false if
// the batch is full.
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

// Lane returns the index of l in the batch's table, or false if the batch is full.
func (p *Packer) Lane(l Lane) (uint16, bool) {
	l.Name = shortened(l.Name)
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

// Exception returns the value for an exception type in events, which is never 0, or false if the
// batch is full.
func (p *Packer) Exception(exception string) (uint16, bool) {
	exception = shortened(exception)
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

// value returns the index of v in the batch's table, or false if the batch is full.
func (p *Packer) value(v Value) (uint16, bool) {
	v.text = shortened(v.text)
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

// enter adds key to t with the next index, if the table has one and the batch has room for size
// bytes and for an event that uses them.
func enter[K comparable](p *Packer, t *table[K], key K, size int) (uint16, bool) {
	n := len(t.index)
	if !p.makeRoom(n, size) {
		return 0, false
	}
	t.index[key] = uint16(n)
	return uint16(n), true
}

// makeRoom reserves size bytes of the batch for the next entry of a table of n. It reports false if
// the table is full, or the batch has no room for the entry and for an event that uses it.
func (p *Packer) makeRoom(n, size int) bool {
	if p.closed || n >= maxIndexes || p.size()+size+eventSize > p.maxBytes {
		return false
	}
	p.room -= size
	return true
}
