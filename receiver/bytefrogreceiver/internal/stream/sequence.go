// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// numbering makes the 32 bit sequence numbers of a run 64 bits long, and counts their messages. All connections of
// the run share it.
type numbering struct {
	// next is one more than the highest number received; 0: none yet.
	next atomic.Uint64
	// received is the number of received messages with a sequence number. It is equal to next if none is missing.
	received atomic.Uint64
}

// Unwrap is the sequence number nearest to reference with n as its lowest 32 bits. A number that looks 2^31 or more
// behind is ahead. A result above callevent.MaxSequence is invalid: it would be below 0, or higher than any agent can
// count.
func Unwrap(reference uint64, n uint32) uint64 {
	return reference + uint64(int64(int32(n-uint32(reference))))
}

// Next is one more than the highest sequence number received; 0: none yet.
func (n *numbering) Next() uint64 { return n.next.Load() }

// Received is the number of received messages with a sequence number.
func (n *numbering) Received() uint64 { return n.received.Load() }

// Missing is the number of sequence numbers below the highest received one that have not arrived.
func (n *numbering) Missing() int64 {
	// In this order: messages that arrive in between make it less, not more. It is not below 0:
	// messages are counted before the highest number is known.
	next := n.next.Load()
	return max(int64(next-n.received.Load()), 0)
}

// MissingBelow is the number of sequence numbers that will be missing below next after the given number of further
// messages.
func (n *numbering) MissingBelow(next, messages uint64) int64 {
	received := n.received.Load() + messages
	return int64(max(next, n.next.Load()) - received)
}

// validSequence reports whether an unwrapped number is a sequence number.
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
