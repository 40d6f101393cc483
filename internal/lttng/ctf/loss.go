// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import "github.com/callbraid/callbraid/internal/lttng/ctf/metadata"

// LossKind is the kind of lost data.
type LossKind uint8

// The kinds of losses.
const (
	// DiscardedEvents are events that the tracer discarded because its buffers were full.
	DiscardedEvents LossKind = iota
	// LostPackets are packets that the tracer wrote, but that the reader did not receive.
	LostPackets
)

func (k LossKind) String() string {
	if k == LostPackets {
		return "lost packets"
	}
	return "discarded events"
}

// Loss describes lost data of a stream.
type Loss struct {
	Kind LossKind
	// Count is the number of events or packets. It is 0 if the counter is below its maximum so far: then data may be
	// missing, but the amount is unknown.
	Count uint64
	// From and To are values of the clock. The lost data lies between them. For events, From is the end of the
	// previous packet, or the begin of the packet if it is the first, and To is the end of the packet. LTTng discards
	// events when a packet is full. Then they lie after its last event, whose time Reader.Clock returns after all
	// events are read.
	From, To uint64
}

// past describes the packets before the current one.
type past struct {
	known         bool
	end, sequence uint64
	// discarded is the highest counter of discarded events. lowCounters is the number of consecutive packets with a
	// lower counter.
	discarded   uint64
	lowCounters int
	roles       metadata.Role
}

// maxLowCounters is the number of consecutive packets with a counter of discarded events below the highest one, after
// which the reader assumes that the counter restarted. Under load, tracers of LTTng write a counter that is too
// small, mostly 0, into one or two packets, and then continue with the right one.
const maxLowCounters = 16

// with returns the past of the packet after p.
func (b past) with(p *Packet) past {
	now := past{known: true, end: p.End, sequence: p.Sequence, discarded: p.Discarded, roles: p.roles}
	if !b.known || b.roles&p.roles&metadata.RoleDiscarded == 0 || p.Discarded == b.discarded ||
		forward(distance(b.discarded, p.Discarded, p.discardedBits), p.discardedBits) > 0 {
		return now
	}
	if b.lowCounters+1 < maxLowCounters {
		now.discarded, now.lowCounters = b.discarded, b.lowCounters+1
	}
	return now
}

// Past describes the packets before the first packet of a Reader.
type Past struct {
	// Sequence is the sequence number of the last packet, Discarded is the highest counter of all.
	Sequence, Discarded uint64
	// End is the end of the last packet, a value of the clock.
	End uint64
}

// Continue makes the reader compare its first packet with the previous one, which another Reader has read.
func (r *Reader) Continue(before Past) {
	r.past = past{
		known: true, end: before.End, sequence: before.Sequence, discarded: before.Discarded,
		roles: metadata.RoleSequence | metadata.RoleDiscarded,
	}
}

// Past returns the input of Continue for another Reader that continues with the next packet.
func (r *Reader) Past() Past {
	return Past{Sequence: r.past.sequence, Discarded: r.past.discarded, End: r.past.end}
}

// losses compares a packet with the previous one. The first packet of a stream, with sequence number 0, is compared
// with a counter of 0. A first packet with another number, or none, has no losses, because earlier packets may have
// been skipped on purpose.
func (r *Reader) losses(p *Packet) []Loss {
	lost := r.lossSpace[:0]
	if !r.past.known {
		if p.Has(metadata.RoleSequence) && p.Sequence == 0 && p.Discarded != 0 {
			lost = append(lost, Loss{Kind: DiscardedEvents, Count: p.Discarded, From: p.Begin, To: p.End})
		}
		return lost
	}
	both := r.past.roles & p.roles
	if both&metadata.RoleSequence != 0 {
		if d := distance(r.past.sequence, p.Sequence, p.sequenceBits); d != 1 {
			lost = append(lost, Loss{Kind: LostPackets, Count: forward(d-1, p.sequenceBits), From: r.past.end, To: p.Begin})
		}
	}
	if both&metadata.RoleDiscarded != 0 {
		if d := distance(r.past.discarded, p.Discarded, p.discardedBits); d != 0 {
			lost = append(lost, Loss{Kind: DiscardedEvents, Count: forward(d, p.discardedBits), From: r.past.end, To: p.End})
		}
	}
	return lost
}

// distance returns the increase of a counter of this many bits, 0 bits meaning 64.
func distance(before, now uint64, bits uint8) uint64 {
	return (now - before) & counterMask(bits)
}

func counterMask(bits uint8) uint64 {
	if bits == 0 {
		bits = 64
	}
	return ^uint64(0) >> (64 - bits)
}

// forward returns the distance d, or 0 if it is more than half of the counter's range: then the counter ran
// backwards.
func forward(d uint64, bits uint8) uint64 {
	if d &= counterMask(bits); d > counterMask(bits)/2 {
		return 0
	}
	return d
}
