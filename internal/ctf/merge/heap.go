// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "math"

// key is where a stream stands in the order.
type key struct {
	time int64
	// number is that of the stream: what is of the same time comes in that order.
	number int
}

func (k key) less(other key) bool {
	return k.time < other.time || k.time == other.time && k.number < other.number
}

// last is behind all keys of streams.
var lastKey = key{math.MaxInt64, math.MaxInt}

// heap is the streams that something is expected of, the first one in front. Each
// knows its place.
type heap []entry

type entry struct {
	key    key
	stream *Stream
}

// notPlaced is the place of a stream that isn't in the heap.
const notPlaced = -1

// first returns the stream with the least key; nil if there is none.
func (h heap) first() *Stream {
	if len(h) == 0 {
		return nil
	}
	return h[0].stream
}

// second returns the least key of the streams but the first.
func (h heap) second() key {
	least := lastKey
	for _, e := range h[min(1, len(h)):min(3, len(h))] {
		if e.key.less(least) {
			least = e.key
		}
	}
	return least
}

// put gives a stream the place that its key asks for.
func (h *heap) put(s *Stream) {
	if s.place == notPlaced {
		s.place = len(*h)
		*h = append(*h, entry{})
	}
	(*h)[s.place] = entry{key{s.key, s.number}, s}
	h.up(s.place)
	h.down(s.place)
}

// remove takes a stream out.
func (h *heap) remove(s *Stream) {
	at, last := s.place, len(*h)-1
	if at == notPlaced {
		return
	}
	s.place = notPlaced
	moved := (*h)[last]
	(*h)[last] = entry{}
	*h = (*h)[:last]
	if at == last {
		return
	}
	(*h)[at] = moved
	moved.stream.place = at
	h.up(at)
	h.down(moved.stream.place)
}

func (h heap) up(i int) {
	e := h[i]
	for i > 0 {
		above := (i - 1) / 2
		if !e.key.less(h[above].key) {
			break
		}
		h.set(i, h[above])
		i = above
	}
	h.set(i, e)
}

func (h heap) down(i int) {
	e := h[i]
	for {
		below := 2*i + 1
		if below >= len(h) {
			break
		}
		if right := below + 1; right < len(h) && h[right].key.less(h[below].key) {
			below = right
		}
		if !h[below].key.less(e.key) {
			break
		}
		h.set(i, h[below])
		i = below
	}
	h.set(i, e)
}

func (h heap) set(i int, e entry) {
	h[i] = e
	e.stream.place = i
}
