// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import "encoding/binary"

// Rename is a name that a lane has from a time on. A tracer sends it beside the events, often later than the first events under
// the new name. So a rename stands in a batch for itself, and holds for the events of every batch. Repeated renames, and their
// order of arrival, change nothing.
type Rename struct {
	// Lane is the lane's ID. It need not be in the batch's table.
	Lane uint64
	// Time is when the name begins to hold: for events at that time, and for later ones until the lane's next rename by Time. It
	// is in Unix nanoseconds, at least 0, in an unpacked batch, and in ticks of the stream's clock in a call of a Packer.
	Time int64
	// First: the receiver knows no earlier name of the lane. The name then also holds for earlier events, unless a rename with
	// an earlier Time arrives.
	First bool
	// Rank is the rename's place among those of its stream, in the order in which the receiver read them. Of two renames with
	// the same Time the one with the higher Rank is the later.
	Rank uint32
	// Reused: another thread has the lane's ID now, and the former thread may still run. The first event of the new thread has
	// a sequence number of at least After - ReuseMargin, and mostly a time of at least Time - ReuseMarginTime.
	Reused bool
	// After is a sequence number that the agent used about when it sent the rename, or an earlier one; MaxSequence: not known.
	// It is 0 without Reused.
	After uint64
	Name  string
}

// ReuseMargin is the number of events, and ReuseMarginTime the number of nanoseconds, by which the first event of a thread that
// reuses a lane can be before the place that its rename names.
const (
	ReuseMargin     = 1024
	ReuseMarginTime = 20_000_000
)

// renames are the renames of the batch, and their names.
type renames struct{ fixed, strings []byte }

// Rename adds r to the batch. It reports false, and adds nothing, if the batch is full. Any rename fits into an empty batch.
func (p *Packer) Rename(r Rename) bool { return p.rename(r, p.maxBytes) }

// RenameAtLast adds r as Rename does, just before the batch is closed with the given number of barriers. It may use the room of
// the other barriers, so renames fit into a batch that events have filled.
func (p *Packer) RenameAtLast(r Rename, barriers int) bool {
	return p.rename(r, p.maxBytes+(MaxBarriers-barriers)*barrierSize)
}

func (p *Packer) rename(r Rename, maxBytes int) bool {
	s := name(r.Name)
	if p.closed || p.Renames() >= MaxRenames || p.size()+renameSize+len(s) > maxBytes {
		return false
	}
	after := uint64(MaxSequence)
	if r.Reused {
		after = r.After
	}
	le, t := binary.LittleEndian, &p.renames
	t.fixed = le.AppendUint64(t.fixed, r.Lane)
	t.fixed = le.AppendUint64(t.fixed, after)
	t.fixed = le.AppendUint64(t.fixed, uint64(p.stream.nanoseconds(r.Time)))
	t.fixed = le.AppendUint32(t.fixed, uint32(len(s)))
	t.fixed = le.AppendUint32(t.fixed, r.Rank)
	t.fixed = append(t.fixed, bit(r.First), 0, bit(r.Reused), 0)
	t.strings = append(t.strings, s...)
	p.narrow()
	return true
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// Renames is the number of renames in the batch.
func (p *Packer) Renames() int { return len(p.renames.fixed) / renameSize }

// nanoseconds is a time of the stream's clock in Unix nanoseconds, or the nearest
// time that a batch can have.
func (s *Stream) nanoseconds(ticks int64) int64 {
	switch {
	case ticks < -(s.Epoch / s.Resolution):
		return 0
	case ticks > (maxTime-s.Epoch)/s.Resolution:
		return maxTime
	}
	return s.Epoch + ticks*s.Resolution
}
