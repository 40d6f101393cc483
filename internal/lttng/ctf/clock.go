// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"math"
	"math/bits"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Clock operations the values of a clock into time.
type Clock struct {
	// Class is the clock's declaration in the metadata.
	Class *metadata.Clock

	// nanoseconds is set if a cycle is one nanosecond. Then base is the time of value 0.
	nanoseconds bool
	base        int64
	// seconds and cycles, less than the frequency, are the time of value 0.
	seconds   int64
	cycles    uint64
	frequency uint64
}

const nanosecondsPerSecond = 1_000_000_000

func newClock(class *metadata.Clock) *Clock {
	c := &Clock{Class: class, frequency: class.Frequency}
	quotient, remainder := int64(0), uint64(0)
	switch {
	case class.Offset >= 0:
		quotient = int64(uint64(class.Offset) / c.frequency)
		remainder = uint64(class.Offset) % c.frequency
	default:
		back := -uint64(class.Offset)
		quotient, remainder = -int64(back/c.frequency), back%c.frequency
		if remainder > 0 {
			quotient, remainder = quotient-1, c.frequency-remainder
		}
	}
	c.seconds, c.cycles = saturatedAdd(class.OffsetSeconds, quotient), remainder
	const far = math.MaxInt64/nanosecondsPerSecond - 1
	if c.frequency == nanosecondsPerSecond && c.seconds >= -far && c.seconds <= far {
		c.nanoseconds = true
		c.base = c.seconds*nanosecondsPerSecond + int64(c.cycles)
	}
	return c
}

// UnixNano returns the time of a value in nanoseconds since the Unix epoch, rounded down. Times outside the years
// 1677 to 2262 become the nearest time inside.
func (c *Clock) UnixNano(value uint64) int64 {
	if c.nanoseconds && value <= math.MaxInt64 {
		if t := c.base + int64(value); t >= c.base {
			return t
		}
		return math.MaxInt64
	}
	sum, carry := bits.Add64(c.cycles, value, 0)
	// cycles < frequency, so the carry is less than the frequency, too.
	seconds, rest := bits.Div64(carry, sum, c.frequency)
	high, low := bits.Mul64(rest, nanosecondsPerSecond)
	// rest < frequency, so high is less than the frequency.
	fraction, _ := bits.Div64(high, low, c.frequency)
	return unixNano(addSaturated(c.seconds, seconds), int64(fraction))
}

// addSaturated returns a+b, or the largest int64 if the sum is larger.
func addSaturated(a int64, b uint64) int64 {
	if room := uint64(math.MaxInt64) - uint64(a); b > room {
		return math.MaxInt64
	}
	return int64(uint64(a) + b)
}

// unixNano joins seconds and nanoseconds. It saturates.
func unixNano(seconds, nanoseconds int64) int64 {
	if seconds < 0 {
		seconds, nanoseconds = seconds+1, nanoseconds-nanosecondsPerSecond
	}
	switch {
	case seconds > math.MaxInt64/nanosecondsPerSecond:
		return math.MaxInt64
	case seconds < math.MinInt64/nanosecondsPerSecond:
		return math.MinInt64
	}
	return saturatedAdd(seconds*nanosecondsPerSecond, nanoseconds)
}

func saturatedAdd(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// extend returns the full value of a clock from its low bits. last is the previous full value. The result is the
// first value at or after last that has these low bits.
func extend(last, low uint64, size uint8) uint64 {
	if size >= 64 {
		return low
	}
	mask := uint64(1)<<size - 1
	value := last&^mask | low&mask
	if low&mask < last&mask {
		value += mask + 1
	}
	return value
}
