// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Index describes a packet independently of its header and context. Times are values of the trace's clock.
type Index struct {
	StreamClass uint64
	Begin, End  uint64
	Discarded   uint64
	Content     uint64 // bits
	// Offset is the place of the packet in its stream. If Placed is set, it increases from packet to packet, and is the
	// same in each reading: it serves as the sequence number of a packet that has none.
	Offset uint64
	Placed bool
}

// sequenceOf returns the sequence number of a packet, or the place in its index; false: it has neither.
func sequenceOf(p *ctf.Packet, index *Index) (uint64, bool) {
	if p.Has(metadata.RoleSequence) || index == nil || !index.Placed {
		return p.Sequence, p.Has(metadata.RoleSequence)
	}
	return index.Offset, true
}

// check returns an error if a packet contradicts its index.
func (i *Index) check(p *ctf.Packet) error {
	for _, field := range [...]struct {
		role          metadata.Role
		name          string
		index, packet uint64
	}{
		{metadata.RoleStreamClass, "stream class", i.StreamClass, p.Class.ID},
		{metadata.RoleClock, "begin", i.Begin, p.Begin},
		{metadata.RolePacketEnd, "end", i.End, p.End},
		{metadata.RoleDiscarded, "number of discarded events", i.Discarded, p.Discarded},
		{metadata.RoleContentSize, "content in bits", i.Content, p.Content},
	} {
		if p.Has(field.role) && field.index != field.packet {
			return fmt.Errorf("packet of %d bits: expected %s %d as in the packet's index, got %d", p.Size, field.name, field.index, field.packet)
		}
	}
	return nil
}
