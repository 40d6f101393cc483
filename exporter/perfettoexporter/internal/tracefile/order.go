// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"cmp"
	"slices"
)

// kind is the kind of an event.
type kind uint8

const (
	kindBegin kind = iota
	kindInstant
	kindEnd
)

// event is an event of a slice, whose message is at an offset of the chunk's bodies. A value and an instant without a
// slice are as the begin of a slice without length.
type event struct {
	time, start, end uint64 // of the event, and of its slice
	slice            uint32 // the number of the slice in the chunk, from 1: callers have higher ones
	offset, size     uint32
	track            uint32
	kind             kind
	name             uint64 // the number of the name
}

// position is where an event stands among those of the same time: the classes in their order.
type position uint8

const (
	// begun: the slice began before.
	begun position = iota
	// empty: the slice begins and ends now.
	empty
	// beginning: the slice begins now, and ends later.
	beginning
)

func (e *event) position() position {
	switch {
	case e.start < e.time:
		return begun
	case e.start == e.end:
		return empty
	}
	return beginning
}

// compareAtEqualTimes is the order of events of one time. In a chunk, callers have higher numbers than their callees. So
// the inner slice ends first, and the outer slice begins first.
func compareAtEqualTimes(a, b *event) int {
	at, slices := a.position(), cmp.Compare(a.slice, b.slice)
	if at == beginning {
		slices = -slices
	}
	return cmp.Or(cmp.Compare(at, b.position()), slices, cmp.Compare(a.kind, b.kind))
}

// timed is the time of an event, and its index.
type timed struct {
	time  uint64
	index uint32
}

// sorter sorts events. It keeps its memory.
type sorter struct{ keys, other []timed }

// digitBits is the number of bits by which events are sorted at a time.
const digitBits = 11

// sort returns the events in the order of a file. It sorts by digits, the lowest first, because comparisons of so many
// events would take longer than their encoding.
func (s *sorter) sort(events []event) []timed {
	s.keys = s.keys[:0]
	least, differ, sorted := ^uint64(0), uint64(0), true
	for i := range events {
		t := events[i].time
		least = min(least, t)
		sorted = sorted && (i == 0 || t >= events[i-1].time)
		s.keys = append(s.keys, timed{t, uint32(i)})
	}
	for i := range s.keys {
		differ |= s.keys[i].time - least
	}
	if !sorted {
		s.other = slices.Grow(s.other[:0], len(events))[:len(events)]
		for shift := 0; differ>>shift != 0; shift += digitBits {
			s.byDigit(least, shift)
		}
	}
	s.sortEqualTimes(events)
	return s.keys
}

// byDigit sorts by one digit, and keeps the order of equal ones.
func (s *sorter) byDigit(least uint64, shift int) {
	const digits = 1 << digitBits
	var starts [digits]uint32
	for i := range s.keys {
		starts[(s.keys[i].time-least)>>shift&(digits-1)]++
	}
	at := uint32(0)
	for i, n := range starts {
		starts[i] = at
		at += n
	}
	for _, k := range s.keys {
		digit := (k.time - least) >> shift & (digits - 1)
		s.other[starts[digit]] = k
		starts[digit]++
	}
	s.keys, s.other = s.other, s.keys
}

func (s *sorter) sortEqualTimes(events []event) {
	for i := 0; i < len(s.keys); {
		j := i + 1
		for j < len(s.keys) && s.keys[j].time == s.keys[i].time {
			j++
		}
		if j > i+1 {
			slices.SortFunc(s.keys[i:j], func(a, b timed) int { return compareAtEqualTimes(&events[a.index], &events[b.index]) })
		}
		i = j
	}
}
