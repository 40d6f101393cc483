// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import "github.com/callbraid/callbraid/internal/call/callevent"

// identity says whether the IDs of an event could be made indexes of the batch's
// tables.
type identity uint8

const (
	identified identity = iota
	nameUnknown
	batchFull
)

// identify enters the method, the thread and the exception of e into the batch's
// tables.
func (b *batcher) identify(e *numbered, out *callevent.Event, force bool) identity {
	var r [3]identity
	out.Function, r[0] = b.function(e.method, force)
	out.Lane, r[1] = b.lane(e.thread, force)
	if e.kind == callevent.KindThrow || e.kind == callevent.KindUnwind {
		out.Exception, r[2] = b.exception(e.exception, force)
	}
	for _, r := range r {
		if r != identified {
			return r
		}
	}
	return identified
}

func (b *batcher) function(id uint32, force bool) (uint16, identity) {
	if index, ok := b.methods.find(id); ok {
		return index, identified
	}
	f := b.stream.names.method(id)
	if f == nil && !force {
		return 0, nameUnknown
	}
	if f == nil {
		f = b.stream.names.numberedMethod(id)
	}
	index, ok := b.packer.Function(f)
	if !ok {
		return 0, batchFull
	}
	b.methods.remember(id, index)
	return index, identified
}

// lane gives a thread the name that is the latest: renames say what it was called at
// an event.
func (b *batcher) lane(thread uint16, force bool) (uint16, identity) {
	if index, ok := b.lanes.find(uint32(thread)); ok {
		return index, identified
	}
	name, known := b.stream.names.thread(thread)
	if !known && !force {
		return 0, nameUnknown
	}
	index, ok := b.packer.Lane(callevent.Lane{ID: uint64(thread), Name: name})
	if !ok {
		return 0, batchFull
	}
	if known {
		b.lanes.remember(uint32(thread), index)
	}
	return index, identified
}

func (b *batcher) exception(id uint32, force bool) (uint16, identity) {
	if index, ok := b.exceptions.find(id); ok {
		return index, identified
	}
	class, known := b.stream.names.exception(id)
	if !known {
		if force {
			// 0 says that an exception is not known.
			return 0, identified
		}
		return 0, nameUnknown
	}
	index, ok := b.packer.Exception(class)
	if !ok {
		return 0, batchFull
	}
	b.exceptions.remember(id, index)
	return index, identified
}
