// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

// position is what is known about the next bit's place in the packet when a program
// is compiled: it is rem more than a multiple of mod, a power of two.
type position struct {
	mod, rem uint64
}

var (
	// packetBegin is the first bit of a packet.
	packetBegin = position{mod: 1 << 62}
	// anywhere is what is known about nothing.
	anywhere = position{mod: 1}
)

// padding returns how many bits are missing to a multiple of align, if that is known.
func (p position) padding(align uint64) (uint64, bool) {
	return -p.rem & (align - 1), align <= p.mod
}

// plus is the position n bits on.
func (p position) plus(n uint64) position {
	return position{mod: p.mod, rem: (p.rem + n) & (p.mod - 1)}
}

// plusSome is the position any number of times n bits on.
func (p position) plusSome(n uint64) position {
	mod := min(p.mod, lowestBit(n))
	return position{mod: mod, rem: p.rem & (mod - 1)}
}

// or is what holds for both positions.
func (p position) or(q position) position {
	mod := min(p.mod, q.mod)
	for p.rem&(mod-1) != q.rem&(mod-1) {
		mod /= 2
	}
	return position{mod: mod, rem: p.rem & (mod - 1)}
}

// atByte says whether the position is known to be the begin of a byte.
func (p position) atByte() bool { return p.mod >= 8 && p.rem&7 == 0 }
