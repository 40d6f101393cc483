// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "sync/atomic"

// numbering makes the 32 bit sequence numbers of an agent 64 bit ones, which don't wrap,
// and counts the messages that have one. It is for all connections of an agent.
type numbering struct {
	// next is one more than the highest number that came; received how many came. They
	// are the same when nothing is on its way.
	next, received atomic.Uint64
}

// unwrap is the number nearest to reference that ends in n. One below zero is 0.
func unwrap(reference uint64, n uint32) uint64 {
	distance := int64(int32(n - uint32(reference)))
	if distance < 0 && reference < uint64(-distance) {
		return 0
	}
	return reference + uint64(distance)
}

// advance says that so many messages came, the highest of which had the number next - 1.
func (n *numbering) advance(next, messages uint64) {
	n.received.Add(messages)
	for {
		old := n.next.Load()
		if next <= old || n.next.CompareAndSwap(old, next) {
			return
		}
	}
}
