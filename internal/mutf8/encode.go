// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mutf8

import (
	"encoding/binary"
	"unicode/utf8"
)

// MaxShort is the maximum number of bytes of a string with a 16-bit length.
const MaxShort = 1<<16 - 1

// Ranges of UTF-16 surrogates, and the offset of the bits of a pair.
const (
	highSurrogateMin = 0xD800
	lowSurrogateMin  = 0xDC00
	supplementaryMin = 0x10000
	surrogateBits    = 10
	surrogateMask    = 1<<surrogateBits - 1
)

// Len returns the number of bytes Append would add for s.
func Len(s string) int {
	n := 0
	for _, r := range s {
		n += runeLen(r)
	}
	return n
}

// Append appends s to dst in modified UTF-8. Bytes of s that are not UTF-8 are
// written as U+FFFD, one for each such byte.
func Append(dst []byte, s string) []byte {
	for _, r := range s {
		dst = appendRune(dst, r)
	}
	return dst
}

// AppendShort appends the length of s as 16 bits in big-endian order and then s, like DataOutputStream.writeUTF. It
// cuts a string that is longer than MaxShort bytes at the end of the last character that fits. A pair of surrogates
// counts as one character.
func AppendShort(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, 0, 0)
	for _, r := range s {
		if len(dst)-start-2+runeLen(r) > MaxShort {
			break
		}
		dst = appendRune(dst, r)
	}
	binary.BigEndian.PutUint16(dst[start:], uint16(len(dst)-start-2))
	return dst
}

// runeLen returns the number of bytes of r, which is valid because it comes from range over a string.
func runeLen(r rune) int {
	switch {
	case r == 0:
		return 2
	case r < utf8.RuneSelf:
		return 1
	case r < 0x800:
		return 2
	case r < supplementaryMin:
		return 3
	default:
		return 6
	}
}

func appendRune(dst []byte, r rune) []byte {
	switch {
	case r == 0:
		return append(dst, 0xC0, 0x80)
	case r < supplementaryMin:
		return utf8.AppendRune(dst, r)
	default:
		bits := r - supplementaryMin
		dst = appendSurrogate(dst, highSurrogateMin|bits>>surrogateBits)
		return appendSurrogate(dst, lowSurrogateMin|bits&surrogateMask)
	}
}

// appendSurrogate writes the three bytes of one half of a pair, which utf8.AppendRune refuses.
func appendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
}
