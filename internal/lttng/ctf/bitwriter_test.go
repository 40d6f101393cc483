// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

// bitWriter writes a packet, bit by bit.
type bitWriter struct {
	data []byte
	pos  int
}

// align moves to the next multiple of bits.
func (w *bitWriter) align(bits int) {
	for w.pos%bits != 0 {
		w.bit(0, true)
	}
}

// bit writes a bit; bits fill bytes from the least significant, or from the most.
func (w *bitWriter) bit(b uint64, little bool) {
	if w.pos%8 == 0 {
		w.data = append(w.data, 0)
	}
	shift := w.pos % 8
	if !little {
		shift = 7 - shift
	}
	w.data[w.pos/8] |= byte(b&1) << shift
	w.pos++
}

// bits writes the lowest size bits of a value.
func (w *bitWriter) bits(value uint64, size int, little bool) {
	for i := range size {
		if little {
			w.bit(value>>i, little)
		} else {
			w.bit(value>>(size-1-i), little)
		}
	}
}

// bytes writes bytes at the next byte.
func (w *bitWriter) bytes(b ...byte) {
	w.align(8)
	for _, c := range b {
		w.bits(uint64(c), 8, true)
	}
}

// patch replaces the number of 64 bits at a byte.
func (w *bitWriter) patch(at int, value uint64, little bool) {
	p := bitWriter{}
	p.bits(value, 64, little)
	copy(w.data[at:], p.data)
}
