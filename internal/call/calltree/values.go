// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "math"

// values are what is known of the calls of a path.
type values struct {
	calls, errors uint64
	total, self   int64
}

func (v *values) add(o *values) {
	v.calls += o.calls
	v.errors += o.errors
	v.total = plus(v.total, o.total)
	v.self = plus(v.self, o.self)
}

// plus adds; what is beyond the numbers that there are is the last of them.
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

// clamp is n, or the largest number that there is.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
