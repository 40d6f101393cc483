// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "unsafe"

// chunkLength is the number of items in a chunk. Hundreds of lanes can each have a list of a
// few items.
const chunkLength = 32

// chunk has some items of a list.
type chunk[T any] struct {
	items [chunkLength]T
	// next is the list's next chunk.
	next uint32
}

// list is a list of items in an arena. It is usable without initialisation.
type list struct {
	first, last uint32
	count       int
}

// arena has the chunks of many lists. A list that is released leaves its chunks to others, so
// lists that grow and go need no new memory.
type arena[T any] struct {
	chunks []*chunk[T]
	// free are chunks that no list has. missing are places in chunks without memory.
	free, missing []uint32
	// idle is the least number of free chunks since the last trim.
	idle int
}

// chunkBytes is the memory of a chunk with its place.
func (a *arena[T]) chunkBytes() int {
	return int(unsafe.Sizeof(chunk[T]{})) + int(unsafe.Sizeof((*chunk[T])(nil)))
}

// append returns a place for one more item of the list. It can have the contents of an old one.
func (a *arena[T]) append(l *list) *T {
	i := l.count % chunkLength
	if i == 0 {
		c := a.freeChunk()
		if l.count == 0 {
			l.first = c
		} else {
			a.chunks[l.last].next = c
		}
		l.last = c
	}
	l.count++
	return &a.chunks[l.last].items[i]
}

// lastPlace is the place of the last item of a list, which is not empty. It is valid until the list is
// released.
func (a *arena[T]) lastPlace(l *list) uint32 {
	return l.last*chunkLength + uint32(l.count-1)%chunkLength
}

// at returns the item at a place.
func (a *arena[T]) at(place uint32) *T {
	return &a.chunks[place/chunkLength].items[place%chunkLength]
}

// freeChunk returns a chunk for a list.
func (a *arena[T]) freeChunk() uint32 {
	if n := len(a.free); n > 0 {
		c := a.free[n-1]
		a.free = a.free[:n-1]
		a.idle = min(a.idle, n-1)
		return c
	}
	if n := len(a.missing); n > 0 {
		c := a.missing[n-1]
		a.missing = a.missing[:n-1]
		a.chunks[c] = new(chunk[T])
		return c
	}
	a.chunks = append(a.chunks, new(chunk[T]))
	return uint32(len(a.chunks) - 1)
}

// release empties the list.
func (a *arena[T]) release(l *list) {
	c := l.first
	for n := l.count; n > 0; n -= chunkLength {
		a.free = append(a.free, c)
		c = a.chunks[c].next
	}
	*l = list{}
}

// trimShare is the part of idle chunks that a trim frees: one of so many. A program can have a large
// trace every few seconds.
const trimShare = 64

// trim frees a part of the chunks that no list has needed since the last trim.
func (a *arena[T]) trim() { a.trimChunks((a.idle + trimShare - 1) / trimShare) }

// trimAll frees all free chunks.
func (a *arena[T]) trimAll() { a.trimChunks(len(a.free)) }

func (a *arena[T]) trimChunks(n int) {
	for range n {
		last := len(a.free) - 1
		c := a.free[last]
		a.free = a.free[:last]
		a.chunks[c] = nil
		a.missing = append(a.missing, c)
	}
	a.idle = len(a.free)
	if len(a.missing) == len(a.chunks) {
		*a = arena[T]{}
	}
}

// heldBytes is the memory of the chunks that lists have.
func (a *arena[T]) heldBytes() int {
	return (len(a.chunks) - len(a.missing) - len(a.free)) * a.chunkBytes()
}

// bytes is about the memory of the arena.
func (a *arena[T]) bytes() int {
	const number = int(unsafe.Sizeof(uint32(0)))
	return (len(a.chunks)-len(a.missing))*a.chunkBytes() + cap(a.missing)*(a.chunkBytes()-int(unsafe.Sizeof(chunk[T]{}))) +
		(cap(a.free)+cap(a.missing))*number
}

// cursor reads a list from its first item on.
type cursor[T any] struct {
	arena *arena[T]
	chunk uint32
	at    int
}

func (a *arena[T]) read(l *list) cursor[T] { return cursor[T]{arena: a, chunk: l.first} }

// next returns the next item, which the list has.
func (c *cursor[T]) next() *T {
	if c.at == chunkLength {
		c.chunk, c.at = c.arena.chunks[c.chunk].next, 0
	}
	c.at++
	return &c.arena.chunks[c.chunk].items[c.at-1]
}
