// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package saturating adds numbers of servers without overflow.
package saturating

import "math"

// Add returns n + more, at most the largest number.
func Add(n int64, more uint64) int64 {
	if more > uint64(math.MaxInt64-n) {
		return math.MaxInt64
	}
	return n + int64(more)
}

// AddProduct returns n + times*each, at most the largest number.
func AddProduct(n int64, times, each uint64) int64 {
	if each > 0 && times > uint64(math.MaxInt64-n)/each {
		return math.MaxInt64
	}
	return n + int64(times*each)
}
