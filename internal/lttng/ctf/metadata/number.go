// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"
)

// Number is an integer from -2^64+1 to 2^64-1, because metadata contains values of signed and of unsigned fields of
// 64 bits.
type Number struct {
	// Negative is false for 0.
	Negative  bool
	Magnitude uint64
}

// Unsigned returns u as a Number.
func Unsigned(u uint64) Number { return Number{Magnitude: u} }

// Signed returns i as a Number.
func Signed(i int64) Number {
	if i < 0 {
		return Number{Negative: true, Magnitude: -uint64(i)}
	}
	return Number{Magnitude: uint64(i)}
}

// Uint64 returns the value, and whether it is in the range from 0 to 2^64-1.
func (n Number) Uint64() (uint64, bool) { return n.Magnitude, !n.Negative }

// Int64 returns the value, and whether it is in the range from -2^63 to 2^63-1.
func (n Number) Int64() (int64, bool) {
	if n.Negative {
		return -int64(n.Magnitude), n.Magnitude <= 1<<63
	}
	return int64(n.Magnitude), n.Magnitude <= math.MaxInt64
}

// Compare returns -1, 0 or +1 as n is less than, equal to or greater than m.
func (n Number) Compare(m Number) int {
	switch {
	case n.Negative && m.Negative:
		return cmp.Compare(m.Magnitude, n.Magnitude)
	case n.Negative:
		return -1
	case m.Negative:
		return 1
	}
	return cmp.Compare(n.Magnitude, m.Magnitude)
}

// Next returns n+1, and whether that fits in a Number.
func (n Number) Next() (Number, bool) {
	if n.Negative {
		return Number{Negative: n.Magnitude > 1, Magnitude: n.Magnitude - 1}, true
	}
	sum, carry := bits.Add64(n.Magnitude, 1, 0)
	return Number{Magnitude: sum}, carry == 0
}

func (n Number) String() string {
	text := strconv.FormatUint(n.Magnitude, 10)
	if n.Negative {
		return "-" + text
	}
	return text
}
