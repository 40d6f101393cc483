// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// program is the compiled layout of one or more scopes: operations in the order of
// the fields.
type program struct {
	ops []op
	// fields are the fields that the operations read, for messages.
	fields []*Field
	tables []selector
	arrays []arrayLayout
}

// bits returns the size of the fields in bits, if they are one run; otherwise 0.
func (p *program) bits() uint64 {
	for i := range p.ops {
		if code := p.ops[i].code; (code == opRun) != (i == 0) || code > opWiden {
			return 0
		}
	}
	if len(p.ops) == 0 {
		return 0
	}
	return uint64(p.ops[0].n)
}

// op is one operation. The meaning of its members depends on the code.
type op struct {
	code opcode
	// bits is the size of an integer; the unit of a string in bytes.
	bits uint8
	// frame and source locate a length or a selector: the number of the frame, 0 for the packet's values, and the
	// slot in it.
	frame uint8
	// signed is set if the selector has a sign.
	signed bool
	// slot is the slot of the value in the current frame.
	slot   uint32
	source uint32
	// n is an offset in the current run in bits, a number of bits or bytes, an index of tables or arrays, or the
	// index of the next operation.
	n uint32
}

// opcode selects the action of an operation.
type opcode uint8

const (
	// opAlign moves to the next multiple of n bits.
	opAlign opcode = iota
	// opRun checks that n bits are there, records where they begin and moves behind them.
	opRun

	// These read a field n bits into the run, at the start of a byte.
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
	// opRange stores the place of source bytes.
	opRange

	// These read a field of any size n bits into the run, at any bit.
	opUintBitsLE
	opIntBitsLE
	opUintBitsBE
	opIntBitsBE
	// opWiden converts the float of 32 bits in the slot to 64 bits.
	opWiden

	// opString reads up to the next NUL of bits bytes.
	opString
	// opBytes stores the place of n bytes.
	opBytes
	// opBytesSource stores the place of bytes. The source holds their number.
	opBytesSource
	// opGather copies n bytes that do not begin at a byte. For opGatherSource, the source holds their number. A bits
	// of 1 means big endian.
	opGather
	opGatherSource
	// opUintVariable and opIntVariable read LEB128.
	opUintVariable
	opIntVariable
	// opNumbers reads the elements of an array of numbers of whole bytes.
	opNumbers
	// opArray executes the operations up to the array's end for each element.
	opArray
	// opSelect continues at the operation that the table has for the source's value.
	opSelect
	// opJump continues at n.
	opJump
	// opEventClass uses the slot's value as the ID of the event class.
	opEventClass
	// opClock extends the clock by the slot's value.
	opClock
)

// arrayLayout holds the other parameters of an array's operation.
type arrayLayout struct {
	// length in elements, unless it has a source.
	length  uint64
	sourced bool
	// stride is the number of slots of an element, minBits its minimum number of bits.
	stride  uint32
	minBits uint64
	// element is the operation that reads a number of size bytes.
	element opcode
	size    uint8
	// end is the index after the operations of the elements. operations is the maximum number of operations for one
	// element, without those of arrays in it.
	end        uint32
	operations uint32
}

// selector maps values to options.
type selector struct {
	// spans are in order and don't overlap.
	spans []span
	// otherwise is the next operation if no span contains the value. It is negative if a span must contain it.
	otherwise int32
}

// span is the range of values from low to high that selects an option. Selectors with a sign have the highest bit of
// their values flipped, so that unsigned comparison has the right order.
type span struct {
	low, high uint64
	option    uint32
	target    uint32
}

// find returns the span that contains the value, or nil.
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
