// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "sync/atomic"

// numbering extends the 32-bit sequence numbers of an agent to 64 bits, and counts the messages that have one. All
// connections of an agent share it.
type numbering struct {
	// next is one more than the highest received number, and received the number of messages. They are equal when no
	// message is on its way.
	next, received atomic.Uint64
}

// unwrap returns the number nearest to reference whose lowest 32 bits are n. A number below zero is 0.
func unwrap(reference uint64, n uint32) uint64 {
	distance := int64(int32(n - uint32(reference)))
	if distance < 0 && reference < uint64(-distance) {
		return 0
	}
	return reference + uint64(distance)
}

// advance counts messages, the highest of which had the number next - 1.
func (n *numbering) advance(next, messages uint64) {
	n.received.Add(messages)
	for {
		old := n.next.Load()
		if next <= old || n.next.CompareAndSwap(old, next) {
			return
		}
	}
}
