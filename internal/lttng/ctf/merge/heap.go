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

// lastKey is behind all keys of streams.
var lastKey = key{math.MaxInt64, math.MaxInt}

// heap is the streams that something is expected of, the one with the least key in
// front. It has no pointers: it changes with almost every event.
type heap struct {
	keys []key
	// places says where in keys a stream stands, by its number.
	places []int
}

// notPlaced is the place of a stream that isn't in the heap.
const notPlaced = -1

// add makes room for the stream with the next number.
func (h *heap) add() { h.places = append(h.places, notPlaced) }

// renumber gives a stream the number of one that is not in the heap, or its own. The
// order of numbers must stay as it is.
func (h *heap) renumber(from, to int) {
	at := h.places[from]
	h.places[from] = notPlaced
	if h.places[to] = at; at != notPlaced {
		h.keys[at].number = to
	}
}

// second returns the least key but for that in front.
func (h *heap) second() key {
	switch len(h.keys) {
	case 0, 1:
		return lastKey
	case 2:
		return h.keys[1]
	}
	if h.keys[2].less(h.keys[1]) {
		return h.keys[2]
	}
	return h.keys[1]
}

// put gives a stream the place that its key asks for.
func (h *heap) put(k key) {
	at := h.places[k.number]
	if at == notPlaced {
		at = len(h.keys)
		h.keys = append(h.keys, k)
	}
	if h.up(at, k) == at {
		h.down(at, k)
	}
}

// remove takes a stream out.
func (h *heap) remove(number int) {
	at := h.places[number]
	if at == notPlaced {
		return
	}
	h.places[number] = notPlaced
	last := len(h.keys) - 1
	moved := h.keys[last]
	h.keys = h.keys[:last]
	if at < last && h.up(at, moved) == at {
		h.down(at, moved)
	}
}

// up puts a key at place i, or nearer to the front, and returns where.
func (h *heap) up(i int, k key) int {
	for i > 0 {
		above := (i - 1) / 2
		if !k.less(h.keys[above]) {
			break
		}
		h.set(i, h.keys[above])
		i = above
	}
	h.set(i, k)
	return i
}

// down puts a key at place i, or farther from the front.
func (h *heap) down(i int, k key) {
	keys := h.keys
	for {
		below := 2*i + 1
		if below >= len(keys) {
			break
		}
		if right := below + 1; right < len(keys) && keys[right].less(keys[below]) {
			below = right
		}
		if !keys[below].less(k) {
			break
		}
		h.set(i, keys[below])
		i = below
	}
	h.set(i, k)
}

func (h *heap) set(i int, k key) {
	h.keys[i] = k
	h.places[k.number] = i
}
