// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import "encoding/binary"

// Rename says that a lane is called otherwise from somewhere on. A tracer can say
// so later than the first events under the new name, and on another way than they
// take, so a rename stands in a batch for itself: it holds for events of every
// batch. Hearing of it twice changes nothing, and neither does the order in which
// renames are heard.
type Rename struct {
	// Lane is the lane's ID. It need not be in the batch's table.
	Lane uint64
	// The name holds for events whose number is not below Sequence, and for those
	// whose time is not before Time, until the next rename of the lane by Time,
	// and by Sequence where that is equal. MaxSequence: only the time is known.
	Sequence uint64
	// Time is in Unix nanoseconds, at least 0, in an unpacked batch, and in ticks
	// of the stream's clock where a Packer takes it.
	Time int64
	// First: as far as the receiver knows, the lane had no name before. The name
	// then holds for earlier events too, unless an earlier one is heard of.
	First bool
	// Order tells renames that hold from the same time and number on which of them is
	// the later: it is the number of the rename among those of its stream, in the order
	// in which the receiver heard of them.
	Order uint32
	// Provisional: from where on the name holds is not known well yet. The rename gives
	// way to the one of its lane and Order that is not provisional, whichever of the
	// two is heard of first.
	Provisional bool
	// Reused: another thread has the lane's ID now, and the one that had it before may
	// still run. ReuseMargin and ReuseMarginTime before Sequence and Time the knowledge
	// of the lane's stack ends; the number of events is not exact, and neither is the time.
	Reused bool
	Name   string
}

// ReuseMargin is by how many events, and ReuseMarginTime by how many nanoseconds, the
// first event of a thread that reuses a lane can be before what the rename says.
const (
	ReuseMargin     = 1024
	ReuseMarginTime = 20_000_000
)

// renames are those of the batch, and their names.
type renames struct{ fixed, strings []byte }

// Rename adds r, whose Sequence is at most MaxSequence, to the batch. It reports
// false, and adds nothing, when the batch is full; any rename fits into an empty
// one.
func (p *Packer) Rename(r Rename) bool { return p.rename(r, p.maxBytes) }

// RenameAtLast adds r as Rename does, when the batch is about to be closed with so
// many barriers: it may take the room that was kept for more of them. So renames that
// have to be told with a batch fit into one that events have filled.
func (p *Packer) RenameAtLast(r Rename, barriers int) bool {
	return p.rename(r, p.maxBytes+(MaxBarriers-barriers)*barrierSize)
}

func (p *Packer) rename(r Rename, maxBytes int) bool {
	s := name(r.Name)
	if p.closed || p.Renames() >= MaxRenames || p.size()+renameSize+len(s) > maxBytes {
		return false
	}
	le, t := binary.LittleEndian, &p.renames
	t.fixed = le.AppendUint64(t.fixed, r.Lane)
	t.fixed = le.AppendUint64(t.fixed, r.Sequence)
	t.fixed = le.AppendUint64(t.fixed, uint64(p.stream.nanoseconds(r.Time)))
	t.fixed = le.AppendUint32(t.fixed, uint32(len(s)))
	t.fixed = le.AppendUint32(t.fixed, r.Order)
	t.fixed = append(t.fixed, bit(r.First), bit(r.Provisional), bit(r.Reused), 0)
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
// that can stand in a batch.
func (s *Stream) nanoseconds(ticks int64) int64 {
	switch {
	case ticks < -(s.Epoch / s.Resolution):
		return 0
	case ticks > (maxTime-s.Epoch)/s.Resolution:
		return maxTime
	}
	return s.Epoch + ticks*s.Resolution
}
