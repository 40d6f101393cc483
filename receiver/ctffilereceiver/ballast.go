// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"runtime"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

const (
	ballastBytes = 64 << 20
	// ballastPart is the largest part of the memory budget that a ballast may have, as its denominator.
	ballastPart = 8
)

// ballast is a part of the heap that is not used. All receivers of a process share it, and the last reader frees it.
type ballast struct {
	mu      sync.Mutex
	readers int
	bytes   []byte
}

// hold makes sure that there is a ballast until release is called.
func (b *ballast) hold(memory *budget.Group) (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.readers++; b.bytes == nil {
		b.bytes = newBallast(memory)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		runtime.KeepAlive(b.bytes)
		if b.readers--; b.readers == 0 {
			b.bytes = nil
		}
	}
}

// newBallast returns the bytes of a ballast, or nil if the memory budget is small. Go collects garbage when
// the heap has doubled since the last collection. A collector that only reads files has a heap of about 10 MiB, so that
// it collects after every 25,000 log records, which takes a fifth of its time. With the ballast it collects a seventh as
// often. The budget does not count the ballast: nothing is written to it, so it has no pages.
func newBallast(memory *budget.Group) []byte {
	if memory.Limit() < ballastPart*ballastBytes {
		return nil
	}
	return make([]byte, ballastBytes)
}
