// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import "math"

// sum is n and more, or the largest number where that is more.
func sum(n int64, more uint64) int64 {
	if more > uint64(math.MaxInt64-n) {
		return math.MaxInt64
	}
	return n + int64(more)
}

// plus is n and so many times each, or the largest number where that is more.
func plus(n int64, times, each uint64) int64 {
	if each > 0 && times > uint64(math.MaxInt64-n)/each {
		return math.MaxInt64
	}
	return n + int64(times*each)
}
