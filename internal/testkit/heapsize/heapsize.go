// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package heapsize compares memory that code counts with the memory that it uses.
package heapsize

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// AssertCounted checks that fill adds to counted about as many bytes as it allocates and keeps.
// tolerance is a part of these bytes.
func AssertCounted(t testing.TB, counted func() int, fill func(), tolerance float64) {
	t.Helper()
	heapBefore, countedBefore := live(), counted()
	fill()
	used, added := live()-heapBefore, int64(counted()-countedBefore)
	t.Logf("counted %d of %d bytes", added, used)
	assert.InDelta(t, 1, float64(added)/float64(used), tolerance)
}

// live returns the bytes of all objects that are in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
