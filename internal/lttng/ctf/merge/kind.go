// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

// Kind is what Merger.Next returns.
type Kind uint8

// The kinds.
const (
	// Nothing can be given out until something comes or time passes, or there was an
	// error.
	Nothing Kind = iota
	// Event is an event: Merger.Event, and Merger.Late.
	Event
	// LossBegin and LossEnd are the ends of an interval in which something is missing:
	// Merger.Loss.
	LossBegin
	LossEnd
	// PacketEnd gives the bytes of a packet back that was read: Merger.Packet.
	PacketEnd
	// StreamEnd says that all of a stream that has ended was given out.
	StreamEnd
)

var kindNames = [...]string{"nothing", "event", "loss begin", "loss end", "packet end", "stream end"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}
