// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"encoding/binary"
	"math/bits"
)

// bitsLE returns size bits (1 to 64) that begin at bit at of data. Bits fill bytes from the least significant bit.
// The caller checks that data has these bits.
func bitsLE(data []byte, at uint64, size uint8) uint64 {
	first, shift := at>>3, uint8(at&7)
	var value uint64
	if first+8 < uint64(len(data)) {
		value = binary.LittleEndian.Uint64(data[first:]) >> shift
		if size > 64-shift {
			value |= uint64(data[first+8]) << (64 - shift)
		}
	} else {
		last := (at + uint64(size) - 1) >> 3
		for i := last; ; i-- {
			if i == first {
				value = value<<(8-shift) | uint64(data[i])>>shift
				break
			}
			value = value<<8 | uint64(data[i])
		}
	}
	return value & (^uint64(0) >> (64 - size))
}

// bitsBE returns size bits (1 to 64) that begin at bit at of data. Bits fill bytes from the most significant bit. The
// caller checks that data has these bits.
func bitsBE(data []byte, at uint64, size uint8) uint64 {
	first, shift := at>>3, uint8(at&7)
	if first+8 < uint64(len(data)) {
		value := binary.BigEndian.Uint64(data[first:]) << shift
		if shift > 0 {
			value |= uint64(data[first+8]) >> (8 - shift)
		}
		return value >> (64 - size)
	}
	end := at + uint64(size)
	last := (end - 1) >> 3
	value := uint64(data[first] & (0xFF >> shift))
	for i := first + 1; i <= last; i++ {
		if i == last {
			used := uint8(end - last<<3)
			return value<<used | uint64(data[i])>>(8-used)
		}
		value = value<<8 | uint64(data[i])
	}
	return value >> (8 - uint8(end-first<<3))
}

// signExtend extends the sign of the lowest size bits (1 to 64).
func signExtend(value uint64, size uint8) uint64 {
	shift := 64 - size
	return uint64(int64(value<<shift) >> shift)
}

// gather appends n bytes of data that begin at any bit.
func gather(dst, data []byte, at, n uint64, bigEndian bool) []byte {
	for i := range n {
		b := bitsLE(data, at+8*i, 8)
		if bigEndian {
			b = bitsBE(data, at+8*i, 8)
		}
		dst = append(dst, byte(b))
	}
	return dst
}

// variable reads a LEB128 number at the start of data and returns its value and its size in bytes. The size is 0 if
// the number does not end or has more than 64 bits.
func variable(data []byte, signed bool) (value uint64, n int) {
	for shift := 0; n < len(data) && n < maxVariableBytes; shift += 7 {
		b := data[n]
		n++
		value |= uint64(b&0x7F) << shift
		if n == maxVariableBytes && !fitsLast(b, signed) {
			return 0, 0
		}
		if b&0x80 == 0 {
			if signed && shift+7 < 64 {
				value = signExtend(value, uint8(shift+7))
			}
			return value, n
		}
	}
	return 0, 0
}

// maxVariableBytes is the size of 64 bits in LEB128: the last byte holds one of them.
const maxVariableBytes = 10

// fitsLast reports whether the value still fits in 64 bits with b as its tenth LEB128 byte.
func fitsLast(b byte, signed bool) bool {
	return b == 0 || b == 1 && !signed || b == 0x7F && signed
}

// lowestBit returns the largest power of two that divides n, and 2^63 for 0.
func lowestBit(n uint64) uint64 {
	return 1 << min(63, bits.TrailingZeros64(n))
}
