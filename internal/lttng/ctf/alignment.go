// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// position describes the place of the next bit in the packet, as far as it is known when a program is compiled: its
// remainder is rem modulo mod, a power of two.
type position struct {
	mod, rem uint64
}

var (
	// packetBegin is the first bit of a packet.
	packetBegin = position{mod: 1 << 62}
	// anywhere is an unknown position.
	anywhere = position{mod: 1}
)

// padding returns the number of bits up to the next multiple of align. The second result is false if that is not
// known.
func (p position) padding(align uint64) (uint64, bool) {
	return -p.rem & (align - 1), align <= p.mod
}

// plus returns the position n bits further.
func (p position) plus(n uint64) position {
	return position{mod: p.mod, rem: (p.rem + n) & (p.mod - 1)}
}

// plusSome returns the position after any number of steps of n bits.
func (p position) plusSome(n uint64) position {
	mod := min(p.mod, lowestBit(n))
	return position{mod: mod, rem: p.rem & (mod - 1)}
}

// or returns the facts that hold for both positions.
func (p position) or(q position) position {
	mod := min(p.mod, q.mod)
	for p.rem&(mod-1) != q.rem&(mod-1) {
		mod /= 2
	}
	return position{mod: mod, rem: p.rem & (mod - 1)}
}

// atByte reports whether the position is known to be the start of a byte.
func (p position) atByte() bool { return p.mod >= 8 && p.rem&7 == 0 }
