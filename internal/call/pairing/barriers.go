// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// never is beyond every sequence number.
const never = ^uint64(0)

const (
	// maxPending bounds the barriers that are ahead. maxHeard bounds the obeyed barriers that the stream remembers,
	// because later batches carry them again.
	maxPending = 4096
	maxHeard   = 1024
)

// barriers are the barriers of a stream.
type barriers struct {
	// pending are ahead of the stream's next number, sorted by From.
	pending []callevent.Barrier
	// heard are the barriers that the stream has obeyed. It forgets the oldest.
	heard []callevent.Barrier
	// stop is the first pending From, or never.
	stop uint64
}

// note adds a barrier to the pending ones, unless it is among them.
func (b *barriers) note(barrier callevent.Barrier) {
	i, there := slices.BinarySearchFunc(b.pending, barrier, compareBarriers)
	if there {
		return
	}
	b.pending = slices.Insert(b.pending, i, barrier)
	b.stop = b.pending[0].From
}

// pop removes the first pending barrier.
func (b *barriers) pop() callevent.Barrier {
	first := b.pending[0]
	b.pending = slices.Delete(b.pending, 0, 1)
	b.stop = never
	if len(b.pending) > 0 {
		b.stop = b.pending[0].From
	}
	return first
}

// hear remembers the barrier, and reports whether it is new.
func (b *barriers) hear(barrier callevent.Barrier) bool {
	// Most often it is the last one.
	for i := len(b.heard) - 1; i >= 0; i-- {
		if compareBarriers(b.heard[i], barrier) == 0 {
			return false
		}
	}
	if len(b.heard) == maxHeard {
		b.heard = slices.Delete(b.heard, 0, 1)
	}
	b.heard = append(b.heard, barrier)
	return true
}

// compareBarriers orders by place. Two barriers at one place are the same even if their causes differ, but a break
// sorts before the end.
func compareBarriers(a, b callevent.Barrier) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
}

// bytes is the memory of the barriers.
func (b *barriers) bytes() int {
	return (cap(b.pending) + cap(b.heard)) * int(unsafe.Sizeof(callevent.Barrier{}))
}
