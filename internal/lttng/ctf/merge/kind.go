// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

// Kind is the kind of a result of Merger.Next.
type Kind uint8

// The kinds.
const (
	// Nothing: Next cannot continue before there is more input or time passes, or there was an error.
	Nothing Kind = iota
	// Event is an event: Merger.Event, and Merger.Late.
	Event
	// LossBegin and LossEnd are the ends of an interval in which data is missing: Merger.Loss.
	LossBegin
	LossEnd
	// PacketEnd returns the bytes of a packet to the caller: Merger.Packet.
	PacketEnd
	// StreamEnd: Next has returned all results of an ended stream.
	StreamEnd
)

var kindNames = [...]string{"nothing", "event", "loss begin", "loss end", "packet end", "stream end"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}
