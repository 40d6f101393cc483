// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// objectBytes is the approximate size in memory of an object without its texts.
const objectBytes = 500

// bytesOf returns the approximate size of an object in memory. It is stored twice: as it was recorded,
// and as names are looked up in it.
func bytesOf(m *symbols.Mapping) int {
	return objectBytes + 2*(len(m.Path)+len(m.BuildID)+len(m.DebugLink))
}

// noRoomError: the objects of the processes of a group reached their limit.
type noRoomError struct{ limit int }

func (e *noRoomError) Error() string {
	return fmt.Sprintf("expected objects of all processes of at most %d bytes (limits.max_objects_bytes), got more", e.limit)
}

// objectList contains the loaded objects of a process. It provides the names of functions, and the next collector
// continues with it. The number of objects of a process is bounded, and so is the total size of all processes'
// objects (limits.max_objects_bytes).
type objectList struct {
	shared *shared
	// loaded names addresses. It is nil if no pipeline accepts traces.
	loaded *symbols.Objects
	// recorded are the objects as the process recorded them, in that order.
	recorded []symbols.Mapping
	// previous are the objects of the previous state dump, while the process records another one.
	previous []symbols.Mapping
	// bytes is the approximate size of both lists.
	bytes int
}

// load adds an object. Objects that it overlaps were unloaded.
func (l *objectList) load(m symbols.Mapping) error {
	overlapped, bytes := l.overlapped(&m)
	if err := l.checkRoom(bytesOf(&m) - bytes); err != nil {
		for base := range overlapped {
			l.unload(base)
		}
		return l.countRefused(err)
	}
	if err := l.loaded.Map(m); err != nil {
		return l.countRefused(err)
	}
	if len(overlapped) > 0 {
		l.remove(func(old *symbols.Mapping) bool { return overlapped[old.Base] })
	}
	l.recorded = append(l.recorded, m)
	l.hold(bytesOf(&m))
	return nil
}

// overlapped returns the bases of the objects that an object overlaps, and their size in memory.
func (l *objectList) overlapped(m *symbols.Mapping) (bases map[uint64]bool, bytes int) {
	for i := range l.recorded {
		old := &l.recorded[i]
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

// countRefused counts and logs the error if it means that there is no room for an object.
func (l *objectList) countRefused(err error) error {
	if errors.As(err, new(*noRoomError)) || errors.Is(err, symbols.ErrTooManyObjects) {
		l.shared.Telemetry.ObjectRefused()
		l.shared.warnObjectRefused(err)
	}
	return err
}

// checkRoom returns an error if objects have no room for so many more bytes.
func (l *objectList) checkRoom(bytes int) error {
	if most := l.shared.Limits.ObjectsBytes; l.shared.objects+bytes > most {
		return &noRoomError{most}
	}
	return nil
}

// hold counts bytes of objects.
func (l *objectList) hold(bytes int) {
	l.bytes += bytes
	l.shared.holdObjects(bytes)
}

// remove removes recorded objects.
func (l *objectList) remove(isGone func(*symbols.Mapping) bool) {
	l.recorded = slices.DeleteFunc(l.recorded, func(m symbols.Mapping) bool {
		if !isGone(&m) {
			return false
		}
		l.hold(-bytesOf(&m))
		return true
	})
}

// unload removes the object at base.
func (l *objectList) unload(base uint64) {
	l.loaded.Unmap(base)
	l.remove(func(m *symbols.Mapping) bool { return m.Base == base })
}

// setBuildID sets the build ID of the object at base.
func (l *objectList) setBuildID(base uint64, id []byte) error {
	if err := l.loaded.SetBuildID(base, id); err != nil {
		return err
	}
	own := bytes.Clone(id)
	l.amend(base, func(m *symbols.Mapping) { m.BuildID, m.BuildIDFollows = own, false })
	return nil
}

// setDebugLink sets the name and the checksum of the file with debug information of the object at base.
func (l *objectList) setDebugLink(base uint64, link string, crc uint32) error {
	if err := l.checkRoom(2 * len(link)); err != nil {
		return err
	}
	if err := l.loaded.SetDebugLink(base, link, crc); err != nil {
		return err
	}
	l.amend(base, func(m *symbols.Mapping) { m.DebugLink, m.DebugCRC = link, crc })
	return nil
}

// amend changes recorded objects at base.
func (l *objectList) amend(base uint64, change func(m *symbols.Mapping)) {
	for i := range l.recorded {
		if m := &l.recorded[i]; m.Base == base {
			before := bytesOf(m)
			change(m)
			l.hold(bytesOf(m) - before)
		}
	}
}

// beginAgain begins another list, to compare it with the current one.
func (l *objectList) beginAgain() { l.previous, l.recorded = l.recorded, nil }

// isSameAsPrevious reports whether most objects of both lists have the same address.
func (l *objectList) isSameAsPrevious() bool {
	same, moved := 0, 0
	for _, m := range l.recorded {
		switch {
		case slices.ContainsFunc(l.previous, func(old symbols.Mapping) bool { return old.Path == m.Path && old.Base == m.Base }):
			same++
		case slices.ContainsFunc(l.previous, func(old symbols.Mapping) bool { return old.Path == m.Path }):
			moved++
		}
	}
	return same > moved
}

// dropPrevious forgets the previous list, and unloads objects that the new list lacks.
func (l *objectList) dropPrevious() {
	previous := l.previous
	l.previous = nil
	for i := range previous {
		old := &previous[i]
		l.hold(-bytesOf(old))
		if !slices.ContainsFunc(l.recorded, func(m symbols.Mapping) bool { return m.Base == old.Base }) {
			l.loaded.Unmap(old.Base)
		}
	}
}

// clear forgets the lists of a process that has ended.
func (l *objectList) clear() {
	l.recorded, l.previous = nil, nil
	l.hold(-l.bytes)
}
