// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import "runtime"

// HeapBytes returns the number of bytes in use after a garbage collection.
func HeapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
