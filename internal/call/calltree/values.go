// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "math"

// values are the values of a path.
type values struct {
	calls, errors uint64
	total, self   int64
}

func (v *values) add(o *values) {
	v.calls = plusCount(v.calls, o.calls)
	v.errors = plusCount(v.errors, o.errors)
	v.total = plus(v.total, o.total)
	v.self = plus(v.self, o.self)
}

// plusCount adds two counts. A sum beyond their range is the largest number.
func plusCount(a, b uint64) uint64 {
	sum := a + b
	if sum < a {
		return math.MaxUint64
	}
	return sum
}

// plus adds two numbers. A sum beyond their range is the largest or smallest number.
func plus(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// clamp is n, or the largest number of the range.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
