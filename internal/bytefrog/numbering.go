// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import "sync/atomic"

// Numbering makes the 32-bit sequence numbers of an agent 64 bits long, and counts the messages that have one. All
// connections of the agent share it.
type Numbering struct {
	// next is one more than the highest received number, and received the number of messages. They are equal if none is
	// missing.
	next, received atomic.Uint64
}

// Unwrap is the number nearest to reference with n as its lowest 32 bits. A number that looks 2^31 or more behind is
// ahead. A number below 0 becomes one that is higher than any agent can count.
func Unwrap(reference uint64, n uint32) uint64 {
	return reference + uint64(int64(int32(n-uint32(reference))))
}

// Next is one more than the highest sequence number received; 0: none yet.
func (n *Numbering) Next() uint64 { return n.next.Load() }

// Received is the number of received messages with a sequence number.
func (n *Numbering) Received() uint64 { return n.received.Load() }

// Missing is the number of sequence numbers below the highest received one that have not arrived.
func (n *Numbering) Missing() int64 {
	// In this order: messages that arrive in between make it less, not more. It is not below 0:
	// messages are counted before the highest number is known.
	next := n.next.Load()
	return max(int64(next-n.received.Load()), 0)
}

// MissingBelow is the number of sequence numbers that will be missing below next after the given number of further
// messages.
func (n *Numbering) MissingBelow(next, messages uint64) int64 {
	received := n.received.Load() + messages
	return int64(max(next, n.next.Load()) - received)
}

// Advance counts messages, the highest of which has the sequence number next - 1.
func (n *Numbering) Advance(next, messages uint64) {
	n.received.Add(messages)
	for {
		old := n.next.Load()
		if next <= old || n.next.CompareAndSwap(old, next) {
			return
		}
	}
}
