// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// The objects that a process has loaded, as it tells them: what names come from, and what a
// collector has to know that goes on where this one stopped. How many a process has is
// bounded, and what those of all processes of a session take (limits.max_objects_bytes).

// objectBytes is what an object takes beside its texts, about.
const objectBytes = 500

// bytesOf is what an object takes, about: it is remembered as it was told, and as names are
// asked of it.
func bytesOf(m *symbols.Mapping) int {
	return objectBytes + 2*(len(m.Path)+len(m.BuildID)+len(m.DebugLink))
}

// noRoomError: the objects of the processes of a session take as much as they may.
type noRoomError struct{ limit int }

func (e *noRoomError) Error() string {
	return fmt.Sprintf("expected objects of all processes of at most %d bytes (limits.max_objects_bytes), got more", e.limit)
}

// load notes that an object is loaded. What it overlaps is not any longer.
func (p *process) load(m symbols.Mapping) error {
	p.forgetAddresses()
	overlapped, bytes := p.overlapped(&m)
	if err := p.trace.follower.roomForObject(bytesOf(&m) - bytes); err != nil {
		for base := range overlapped {
			p.unload(base)
		}
		return p.refused(err)
	}
	if err := p.addresses.objects.Map(m); err != nil {
		return p.refused(err)
	}
	if len(overlapped) > 0 {
		p.untell(func(old *symbols.Mapping) bool { return overlapped[old.Base] })
	}
	p.addresses.told = append(p.addresses.told, m)
	p.holdObjects(bytesOf(&m))
	return nil
}

// overlapped are the objects that were told where another one is, and what they take.
func (p *process) overlapped(m *symbols.Mapping) (bases map[uint64]bool, bytes int) {
	for i := range p.addresses.told {
		old := &p.addresses.told[i]
		if old.Base == m.Base || old.Base < m.Base+m.Size && m.Base < old.Base+old.Size {
			if bases == nil {
				bases = map[uint64]bool{}
			}
			bases[old.Base] = true
			bytes += bytesOf(old)
		}
	}
	return bases, bytes
}

// refused counts and says that an object has no room, if that is the error.
func (p *process) refused(err error) error {
	if errors.As(err, new(*noRoomError)) || errors.Is(err, symbols.ErrTooManyObjects) {
		p.trace.env.telemetry.objectRefused()
		p.trace.follower.warnNoRoom(err)
	}
	return err
}

// roomForObject is an error where so many bytes more of objects have no room.
func (f *follower) roomForObject(bytes int) error {
	if most := f.env.config.Limits.MaxObjectsBytes; f.objects+bytes > most {
		return &noRoomError{most}
	}
	return nil
}

// holdObjects notes that the lists of objects take so many bytes more.
func (p *process) holdObjects(bytes int) {
	p.addresses.bytes += bytes
	p.trace.follower.objects += bytes
	p.trace.follower.remembered(bytes)
}

// untell takes objects off the list of those that were told.
func (p *process) untell(gone func(*symbols.Mapping) bool) {
	a := &p.addresses
	a.told = slices.DeleteFunc(a.told, func(m symbols.Mapping) bool {
		if !gone(&m) {
			return false
		}
		p.holdObjects(-bytesOf(&m))
		return true
	})
}

// unload notes that an object is no longer loaded.
func (p *process) unload(base uint64) {
	p.forgetAddresses()
	p.addresses.objects.Unmap(base)
	p.untell(func(m *symbols.Mapping) bool { return m.Base == base })
}

// setBuildID takes the build ID of an object that was told without.
func (p *process) setBuildID(base uint64, id []byte) error {
	if err := p.addresses.objects.SetBuildID(base, id); err != nil {
		return err
	}
	p.forgetAddresses()
	own := bytes.Clone(id)
	p.amend(base, func(m *symbols.Mapping) { m.BuildID, m.BuildIDFollows = own, false })
	return nil
}

// setDebugLink takes the name of the file with debug information of an object.
func (p *process) setDebugLink(base uint64, name []byte) error {
	link := validString(name)
	if err := p.trace.follower.roomForObject(2 * len(link)); err != nil {
		return err
	}
	if err := p.addresses.objects.SetDebugLink(base, link); err != nil {
		return err
	}
	p.amend(base, func(m *symbols.Mapping) { m.DebugLink = link })
	return nil
}

// amend changes what was told of an object.
func (p *process) amend(base uint64, change func(m *symbols.Mapping)) {
	told := p.addresses.told
	for i := range told {
		if m := &told[i]; m.Base == base {
			before := bytesOf(m)
			change(m)
			p.holdObjects(bytesOf(m) - before)
		}
	}
}

// recall loads the objects that a process had when it was read last.
func (p *process) recall(told []symbols.Mapping) {
	if p.addresses.objects == nil || len(told) == 0 {
		return
	}
	for _, m := range told {
		// Each was loaded once; one that has no room is said.
		_ = p.load(m)
	}
	p.addresses.listed = true
}

// forgetObjects gives up the lists of a process that nothing is asked of any more.
func (p *process) forgetObjects() {
	p.addresses.told, p.addresses.again.before = nil, nil
	p.holdObjects(-p.addresses.bytes)
}
