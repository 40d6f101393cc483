// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"cmp"
	"math/bits"
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
	time         uint64
	slice        uint32 // the number of the slice in the chunk, from 1: callers have higher ones
	offset, size uint32
	track        uint32
	name         uint32 // the number of the name
	kind         kind
	position     position
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

// positionOf returns the position of an event of a slice.
func positionOf(time, start, end uint64) position {
	switch {
	case start < time:
		return begun
	case start == end:
		return empty
	}
	return beginning
}

// compareAtEqualTimes is the order of events of one time. In a chunk, callers have higher numbers than their callees. So
// the inner slice ends first, and the outer slice begins first.
func compareAtEqualTimes(a, b *event) int {
	slices := cmp.Compare(a.slice, b.slice)
	if a.position == beginning {
		slices = -slices
	}
	return cmp.Or(cmp.Compare(a.position, b.position), slices, cmp.Compare(a.kind, b.kind))
}

// leastOfGroup is the number of events in a chunk from which on a track has a group of its own.
const leastOfGroup = 64

// sorter sorts the events of a chunk for the file. It keeps its memory.
//
// A key is the place of an event in the file, and says which event it is: from the highest bits, the number of its group, its
// time since the first event of the chunk, and its index.
type sorter struct {
	keys, other         []uint64
	tracks              []*track
	timeBits, indexBits int
}

// sort returns the events in the order of the file, as keys. Readers sort events by time, so the file can have those of each
// busy track as a group. Repetitions are then closer together: files are smaller, and compressed in less time. All others are
// group 0.
//
//  1. Each track with enough events gets a group. If times differ too much for a key, all events are in group 0.
//  2. Keys are sorted by digits, the lowest first, because comparisons of so many events would take longer than their encoding.
//  3. Events of the same group and time are brought into the order of nesting.
func (s *sorter) sort(events []event, tracks []*track) []uint64 {
	least, most := ^uint64(0), uint64(0)
	for i := range events {
		least, most = min(least, events[i].time), max(most, events[i].time)
	}
	s.timeBits, s.indexBits = bits.Len64(most-least), bits.Len(uint(len(events)))
	s.keys = s.keys[:0]
	if s.timeBits+s.indexBits > keyBits {
		s.compare(events)
		return s.keys
	}
	s.group(events, tracks)
	differ := uint64(0)
	for i := range events {
		e := &events[i]
		place := uint64(tracks[e.track-1].group)<<s.timeBits | (e.time - least)
		differ |= place
		s.keys = append(s.keys, place<<s.indexBits|uint64(i))
	}
	s.other = slices.Grow(s.other[:0], len(events))[:len(events)]
	width := bits.Len64(differ)
	digits := (width + maxDigitBits - 1) / maxDigitBits
	for n := range digits {
		from, to := width*n/digits, width*(n+1)/digits
		s.byDigit(s.indexBits+from, to-from)
	}
	s.sortEqual(events)
	return s.keys
}

// compare sorts events by comparing them. All are in group 0.
func (s *sorter) compare(events []event) {
	s.timeBits = keyBits
	for i := range events {
		s.keys = append(s.keys, uint64(i))
	}
	slices.SortFunc(s.keys, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(events[a].time, events[b].time), compareAtEqualTimes(&events[a], &events[b]))
	})
}

// group gives each track of the events its group.
func (s *sorter) group(events []event, tracks []*track) {
	s.tracks = s.tracks[:0]
	for i := range events {
		t := tracks[events[i].track-1]
		if t.events == 0 {
			s.tracks = append(s.tracks, t)
		}
		t.events++
	}
	most := uint32(len(s.tracks))
	if bits.Len32(most)+s.timeBits+s.indexBits > keyBits {
		most = 0
	}
	groups := uint32(0)
	for _, t := range s.tracks {
		t.group = 0
		if t.events >= leastOfGroup && groups < most {
			groups++
			t.group = groups
		}
		t.events = 0
	}
}

// groupOf returns the group of an event.
func (s *sorter) groupOf(key uint64) uint64 { return key >> s.timeBits >> s.indexBits }

// indexOf returns the index of an event.
func (s *sorter) indexOf(key uint64) uint64 { return key & (1<<s.indexBits - 1) }

const (
	keyBits = 64
	// maxDigitBits is the number of bits by which events are sorted at a time, at most.
	maxDigitBits = 11
)

// byDigit sorts by one digit, and keeps the order of equal ones.
func (s *sorter) byDigit(shift, digitBits int) {
	var room [1 << maxDigitBits]uint32
	starts, mask := room[:1<<digitBits], uint64(1)<<digitBits-1
	for _, key := range s.keys {
		starts[key>>shift&mask]++
	}
	at := uint32(0)
	for i, n := range starts {
		starts[i] = at
		at += n
	}
	for _, key := range s.keys {
		to := &starts[key>>shift&mask]
		s.other[*to] = key
		*to++
	}
	s.keys, s.other = s.other, s.keys
}

func (s *sorter) sortEqual(events []event) {
	for i := 0; i < len(s.keys); {
		j := i + 1
		for j < len(s.keys) && s.keys[j]>>s.indexBits == s.keys[i]>>s.indexBits {
			j++
		}
		if j > i+1 {
			slices.SortFunc(s.keys[i:j], func(a, b uint64) int { return compareAtEqualTimes(&events[s.indexOf(a)], &events[s.indexOf(b)]) })
		}
		i = j
	}
}
