// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import "github.com/callbraid/callbraid/internal/lttng/ctf/metadata"

// LossKind is what was lost.
type LossKind uint8

// The kinds of losses.
const (
	// DiscardedEvents are events that the tracer had no room for.
	DiscardedEvents LossKind = iota
	// LostPackets are packets that were written and not read.
	LostPackets
)

func (k LossKind) String() string {
	if k == LostPackets {
		return "lost packets"
	}
	return "discarded events"
}

// Loss is something of a stream that isn't there.
type Loss struct {
	Kind LossKind
	// Count is how many events or packets; 0 if the counter is below the highest one,
	// which says that something may be missing, but not how much.
	Count uint64
	// From and To are values of the clock; what was lost lies between them. For
	// events From is the end of the packet before, for the first packet its own
	// begin, and To the packet's end. LTTng discards events once a packet is full:
	// then they lie behind its last event, whose time Reader.Clock is when all events
	// have been read.
	From, To uint64
}

// past is what a Reader knows from the packets before.
type past struct {
	known         bool
	end, sequence uint64
	// discarded is the highest counter of discarded events; below is how many packets in
	// a row have had a lower one.
	discarded uint64
	below     int
	roles     metadata.Role
}

// mostBelow is after how many packets in a row with a counter of discarded events below
// the highest the counter is believed to have begun anew. Tracers of LTTng write too
// small a counter, mostly 0, into a packet or two under load, and go on with the right
// one.
const mostBelow = 16

// with is what is known when a packet was begun, too.
func (b past) with(p *Packet) past {
	now := past{known: true, end: p.End, sequence: p.Sequence, discarded: p.Discarded, roles: p.roles}
	if !b.known || b.roles&p.roles&metadata.RoleDiscarded == 0 || p.Discarded == b.discarded ||
		forward(distance(b.discarded, p.Discarded, p.discardedBits), p.discardedBits) > 0 {
		return now
	}
	if b.below+1 < mostBelow {
		now.discarded, now.below = b.discarded, b.below+1
	}
	return now
}

// Past is what is known of the packets before the first one that a Reader is given.
type Past struct {
	// Sequence is the number of the last one, Discarded the highest counter of all.
	Sequence, Discarded uint64
	// End is a value of the clock.
	End uint64
}

// Continue has the first packet compared with the one before it, which another Reader
// has read.
func (r *Reader) Continue(before Past) {
	r.past = past{
		known: true, end: before.End, sequence: before.Sequence, discarded: before.Discarded,
		roles: metadata.RoleSequence | metadata.RoleDiscarded,
	}
}

// Past is what a Reader has to know that goes on with the packet after the one that was
// begun.
func (r *Reader) Past() Past {
	return Past{Sequence: r.past.sequence, Discarded: r.past.discarded, End: r.past.end}
}

// losses compares a packet with the one before. The first packet of a stream, with
// sequence number 0, is compared with a counter of 0; one with another number, or
// none, says nothing: what was before may have been left out on purpose.
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

// distance is how far a counter of some bits went from before to now; bits 0 means 64.
func distance(before, now uint64, bits uint8) uint64 {
	return (now - before) & counterMask(bits)
}

func counterMask(bits uint8) uint64 {
	if bits == 0 {
		bits = 64
	}
	return ^uint64(0) >> (64 - bits)
}

// forward is the distance d, or 0 if it is more than half of all: the counter ran
// backwards.
func forward(d uint64, bits uint8) uint64 {
	if d &= counterMask(bits); d > counterMask(bits)/2 {
		return 0
	}
	return d
}
