// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math/bits"
	"unsafe"

	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// maxDense is the ID below which a cache is a slice. Agents count IDs up from 0, so nearly all are below. The others
// are in a map.
const maxDense = 1 << 18

// idCache remembers the indexes of the IDs of methods, exceptions or threads in the open batch. An entry is valid
// while its generation is the cache's, so one step forgets all entries. The cache is for one goroutine.
type idCache struct {
	generation uint32
	dense      []idSlot
	sparse     map[uint32]uint16
	// mapped is the number of entries for which sparse has reserved memory.
	mapped int
	memory *runmemory.Memory
}

type idSlot struct {
	generation uint32
	index      uint16
}

const (
	slotBytes = int(unsafe.Sizeof(idSlot{}))
	// sparseBytes is about the memory of an entry of the map.
	sparseBytes = 16
)

func newIDCache(m *runmemory.Memory) idCache {
	return idCache{generation: 1, sparse: map[uint32]uint16{}, memory: m}
}

// lookup is the index of an ID that is in the slice. It is small enough to be inlined into the loop
// over events.
func (c *idCache) lookup(id uint32) (uint16, bool) {
	if uint64(id) >= uint64(len(c.dense)) {
		return 0, false
	}
	s := c.dense[id]
	return s.index, s.generation == c.generation
}

// find is the index of any ID.
func (c *idCache) find(id uint32) (uint16, bool) {
	if index, ok := c.lookup(id); ok {
		return index, true
	}
	index, ok := c.sparse[id]
	return index, ok
}

// remember stores the index of an ID, if there is memory for it.
func (c *idCache) remember(id uint32, index uint16) {
	if uint64(id) >= uint64(len(c.dense)) && !c.grow(id) {
		c.rememberSparse(id, index)
		return
	}
	c.dense[id] = idSlot{generation: c.generation, index: index}
}

// rememberSparse is remember for an ID that is not in the slice.
func (c *idCache) rememberSparse(id uint32, index uint16) {
	if len(c.sparse) >= c.mapped {
		if !c.memory.Reserve(sparseBytes) {
			return
		}
		c.mapped++
	}
	c.sparse[id] = index
}

// grow makes the slice long enough for id, if there is memory for it.
func (c *idCache) grow(id uint32) bool {
	if id >= maxDense {
		return false
	}
	size := 1 << bits.Len32(id|0xff)
	if !c.memory.Reserve((size - len(c.dense)) * slotBytes) {
		return false
	}
	bigger := make([]idSlot, size)
	copy(bigger, c.dense)
	c.dense = bigger
	return true
}

// forget removes all indexes.
func (c *idCache) forget() {
	c.generation++
	clear(c.sparse)
}

// release removes all indexes and returns the memory.
func (c *idCache) release() {
	c.forget()
	c.memory.Return(len(c.dense)*slotBytes + c.mapped*sparseBytes)
	c.dense, c.sparse, c.mapped = nil, map[uint32]uint16{}, 0
}
