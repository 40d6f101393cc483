// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// program is the compiled layout of one or more scopes: operations in the order of
// the fields.
type program struct {
	ops []op
	// fields are those that the operations read, for messages.
	fields []*Field
	tables []selector
	arrays []arrayLayout
}

// op is one operation. What its members mean depends on the code.
type op struct {
	code opcode
	// bits is the size of an integer; the unit of a string in bytes.
	bits uint8
	// frame and source are where a length or a selector is found: the frame's
	// number, 0 for the packet's values, and the slot in it.
	frame uint8
	// signed is that of a selector.
	signed bool
	// slot is where in the current frame the value goes.
	slot   uint32
	source uint32
	// n is the place in the current run in bits, a number of bits or bytes, an
	// index of tables or arrays, or where to go on.
	n uint32
}

// opcode is what an operation does.
type opcode uint8

const (
	// opAlign moves to the next multiple of n bits.
	opAlign opcode = iota
	// opRun checks that n bits are there, remembers where they begin and moves behind.
	opRun

	// These read a field at n bits in the run, which is at a byte.
	opUint8
	opInt8
	opUint16LE
	opInt16LE
	opUint32LE
	opInt32LE
	opUint64LE
	opFloat32LE
	opUint16BE
	opInt16BE
	opUint32BE
	opInt32BE
	opUint64BE
	opFloat32BE
	// opRange keeps the place of source bytes.
	opRange

	// These read a field of any size at n bits in the run, at any bit.
	opUintBitsLE
	opIntBitsLE
	opUintBitsBE
	opIntBitsBE
	// opWiden makes a float of 64 bits of the 32 in the slot.
	opWiden

	// opString reads to the next NUL, of as many bytes as bits says.
	opString
	// opTake keeps the place of n bytes.
	opTake
	// opTakeSource keeps the place of as many bytes as the source says.
	opTakeSource
	// opGather copies n bytes that don't begin at a byte; opGatherSource as many as
	// the source says. A bits of 1 means big endian.
	opGather
	opGatherSource
	// opUintVariable and opIntVariable read LEB128.
	opUintVariable
	opIntVariable
	// opNumbers reads the elements of an array, numbers of whole bytes.
	opNumbers
	// opArray executes what follows up to the array's end for each element.
	opArray
	// opSelect goes on where the table says for the source's value.
	opSelect
	// opJump goes on at n.
	opJump
	// opEventClass makes the slot's value the event class's ID.
	opEventClass
	// opClock extends the clock by the slot's value.
	opClock
)

// arrayLayout is what an array's operation needs besides.
type arrayLayout struct {
	// length in elements, unless it has a source.
	length  uint64
	sourced bool
	// stride is how many slots an element has, minBits how many bits at least.
	stride  uint32
	minBits uint64
	// element is the operation that reads a number of size bytes.
	element opcode
	size    uint8
	// end is where the operations of the elements end; turns is how many operations
	// an element is at most, those of arrays in it aside.
	end   uint32
	turns uint32
}

// selector says which option a value selects.
type selector struct {
	// spans are in order and don't overlap.
	spans []span
	// otherwise is where to go on if no span has the value; below 0 if it must.
	otherwise int32
}

// span is the values from low to high that select an option. Those of a selector
// with sign have their highest bit flipped, so that they compare as without.
type span struct {
	low, high uint64
	option    uint32
	target    uint32
}

// find returns the span that has the value; nil if none has.
func (s *selector) find(value uint64) *span {
	if len(s.spans) <= maxSelectedByScan {
		for i := range s.spans {
			if c := &s.spans[i]; value >= c.low && value <= c.high {
				return c
			}
		}
		return nil
	}
	from, to := 0, len(s.spans)
	for from < to {
		middle := int(uint(from+to) / 2)
		if s.spans[middle].high < value {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from < len(s.spans) && s.spans[from].low <= value {
		return &s.spans[from]
	}
	return nil
}
