// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// numbering makes the 32 bit sequence numbers of a run 64 bit ones, and counts
// the messages that have one. It is for all connections of the run.
type numbering struct {
	// next is one more than the highest number received; 0: none yet.
	next atomic.Uint64
	// received is how many messages with a sequence number were received. It is equal to next if
	// none is missing.
	received atomic.Uint64
}

// Unwrap is the sequence number nearest to reference whose lowest 32 bits are n: one that looks 2^31 or
// more behind is ahead. A result above callevent.MaxSequence is invalid: it would be below 0, or no
// agent can have counted so far.
func Unwrap(reference uint64, n uint32) uint64 {
	return reference + uint64(int64(int32(n-uint32(reference))))
}

// Next is one more than the highest sequence number received; 0: none yet.
func (n *numbering) Next() uint64 { return n.next.Load() }

// Received is how many messages with a sequence number were received.
func (n *numbering) Received() uint64 { return n.received.Load() }

// Missing is how many sequence numbers below the highest received were not received.
func (n *numbering) Missing() int64 {
	// In this order: messages that arrive in between make it less, not more. It is not below 0:
	// messages are counted before the highest number is known.
	next := n.next.Load()
	return max(int64(next-n.received.Load()), 0)
}

// MissingBelow is how many sequence numbers are missing below next once so many more messages
// were received.
func (n *numbering) MissingBelow(next, messages uint64) int64 {
	received := n.received.Load() + messages
	return int64(max(next, n.next.Load()) - received)
}

// validSequence reports whether a number that was unwrapped is one.
func validSequence(n uint64) bool { return n < callevent.MaxSequence }

// Advance counts messages, the highest of which has the sequence number next - 1.
func (n *numbering) Advance(next, messages uint64) {
	n.received.Add(messages)
	for {
		old := n.next.Load()
		if next <= old || n.next.CompareAndSwap(old, next) {
			return
		}
	}
}
