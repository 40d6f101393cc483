// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "hash/fnv"

// Position is the position in a stream after the returned events.
type Position struct {
	// Known is set if the stream's packets have sequence numbers, or places. Otherwise the other fields are invalid.
	Known bool
	// Next is the sequence number of the current or next packet, or the lower bound of its place.
	Next uint64
	// Events is the number of returned events of that packet.
	Events uint64
	// After is set if a packet was read before that one. Discarded is its counter of discarded events and End its
	// end, a value of the clock.
	After          bool
	Discarded, End uint64
	// First is the first packet that was read of the stream.
	First FirstPacket
}

// FirstPacket shows whether a stream is the one of a position. The first packets of two recordings can have the same
// sequence number, or place. They rarely have the same begin, and very rarely the same content.
type FirstPacket struct {
	Known           bool
	Sequence, Begin uint64
	// Hash is that of its content. 0: not known.
	Hash uint64
}

// IsOther reports whether a packet is another one with the same sequence number or place. It compares the parts that are
// known of both.
func (f FirstPacket) IsOther(packet FirstPacket) bool {
	return f.Known && packet.Known && f.Sequence == packet.Sequence &&
		(f.Begin != packet.Begin || f.Hash != 0 && packet.Hash != 0 && f.Hash != packet.Hash)
}

// HashedBytes is the number of bytes at the begin of a packet's content that HashOf uses.
const HashedBytes = 1 << 10

// HashOf returns the hash of a packet, for FirstPacket.
func HashOf(content []byte) uint64 {
	h := fnv.New64a()
	h.Write(content[:min(len(content), HashedBytes)])
	return h.Sum64()
}

// finishedPacket describes the last packet of a stream that was read to its end.
type finishedPacket struct {
	// any is set if there was one, numbered if it had a sequence number.
	any, numbered            bool
	sequence, discarded, end uint64
}
