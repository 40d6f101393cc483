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
	Name  string
}

// Rename adds r, whose Sequence is at most MaxSequence, to the batch. It reports
// false, and adds nothing, when the batch is full; any rename fits into an empty
// one.
func (p *Packer) Rename(r Rename) bool {
	s := name(r.Name)
	if p.closed || p.Renames() >= MaxRenames || p.size()+renameSize+len(s) > p.maxBytes {
		return false
	}
	first := byte(0)
	if r.First {
		first = 1
	}
	le, t := binary.LittleEndian, &p.renames
	t.fixed = le.AppendUint64(t.fixed, r.Lane)
	t.fixed = le.AppendUint64(t.fixed, r.Sequence)
	t.fixed = le.AppendUint64(t.fixed, uint64(p.stream.nanoseconds(r.Time)))
	t.fixed = le.AppendUint32(t.fixed, uint32(len(s)))
	t.fixed = append(t.fixed, first, 0, 0, 0)
	t.strings = append(t.strings, s...)
	p.narrow()
	return true
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
