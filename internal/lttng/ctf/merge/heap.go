// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "math"

// key is the place of a stream in the order.
type key struct {
	time int64
	// rank orders streams of the same time.
	rank rank
}

func (k key) less(other key) bool {
	return k.time < other.time || k.time == other.time && k.rank < other.rank
}

// lastKey is after all keys of streams.
var lastKey = key{math.MaxInt64, math.MaxUint64}

// rank is the place of a stream among those of the same time: by class, by instance, and by number. Class and instance
// are those of its packets. For LTTng they are the channel and the CPU. So the order of events does not depend on the
// order in which a relay daemon or a directory lists the streams. The rank of a stream without packets is that of class
// 0 and instance 0.
type rank uint64

const (
	// The lowest bits of a rank are the number, the next ones the instance. Higher classes and instances share a value.
	numberBits, instanceBits = 32, 20
	maxInstance              = 1<<instanceBits - 1
	maxClass                 = 1<<(64-numberBits-instanceBits) - 1
)

// of returns the rank of a stream with packets of a class and an instance.
func (r rank) of(class, instance uint64) rank {
	return rank(min(class, maxClass)<<(numberBits+instanceBits)|min(instance, maxInstance)<<numberBits) | rank(r.number())
}

// number returns the number of the stream.
func (r rank) number() int { return int(r & (1<<numberBits - 1)) }

// renumbered returns the rank with another number.
func (r rank) renumbered(number int) rank { return r - rank(r.number()) + rank(number) }

// heap contains the streams with a place in the order, the one with the smallest key in front. It has no pointers,
// because it changes with almost every event.
type heap struct {
	keys []key
	// places maps the numbers of streams to indexes of keys.
	places []int
}

// notPlaced is the place of a stream that is not in the heap.
const notPlaced = -1

// addStream adds a place for the stream with the next number.
func (h *heap) addStream() { h.places = append(h.places, notPlaced) }

// renumber changes the number of a stream to one that is not in the heap, or to its own. The order of the numbers
// must not change.
func (h *heap) renumber(from, to int) {
	at := h.places[from]
	h.places[from] = notPlaced
	if h.places[to] = at; at != notPlaced {
		h.keys[at].rank = h.keys[at].rank.renumbered(to)
	}
}

// second returns the second smallest key.
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

// put inserts a stream, or moves it to the place of its new key.
func (h *heap) put(k key) {
	at := h.places[k.rank.number()]
	if at == notPlaced {
		at = len(h.keys)
		h.keys = append(h.keys, k)
	}
	if h.up(at, k) == at {
		h.down(at, k)
	}
}

// putFirst moves the first stream to the place of its new key, which is not smaller.
func (h *heap) putFirst(k key) { h.down(0, k) }

// remove removes a stream.
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

// up moves a key from index i towards the front and returns its new index.
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

// down moves a key from index i towards the end.
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
	h.places[k.rank.number()] = i
}
