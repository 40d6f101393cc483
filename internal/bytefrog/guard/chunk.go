// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "sync"

const kib, mib = 1 << 10, 1 << 20

// chunkBytes is how much of a connection is read at once.
const chunkBytes = 64 * kib

// chunk is a piece of what came on a connection. Who reads fills one, and gives it to who
// writes: nothing is copied on the way.
type chunk struct {
	buf []byte
	// begin and end are of what is filled. begin is 0 until a part was written.
	begin, end int
}

func (c *chunk) bytes() []byte { return c.buf[c.begin:c.end] }

// empty has nothing be filled.
func (c *chunk) empty() { c.begin, c.end = 0, 0 }

// add copies bytes behind what is there, as many as there is room for.
func (c *chunk) add(b []byte) (n int) {
	n = copy(c.buf[c.end:], b)
	c.end += n
	return n
}

// left is how many more bytes there is room for.
func (c *chunk) left() int { return len(c.buf) - c.end }

// fillBytes is how much room a chunk that waits has to have to be filled up: what doesn't fit
// has to be moved to the front of its own.
const fillBytes = chunkBytes / 16

// drop takes n bytes away from the front, and has what is left begin there.
func (c *chunk) drop(n int) {
	c.end = copy(c.buf, c.buf[c.begin+n:c.end])
	c.begin = 0
}

// chunks are those that nobody uses.
type chunks struct{ pool sync.Pool }

// take gives an empty chunk of at least so many bytes.
func (c *chunks) take(size int) *chunk {
	if size > chunkBytes {
		return &chunk{buf: make([]byte, size)}
	}
	if free, ok := c.pool.Get().(*chunk); ok {
		return free
	}
	return &chunk{buf: make([]byte, chunkBytes)}
}

func (c *chunks) put(used *chunk) {
	if len(used.buf) == chunkBytes {
		used.empty()
		c.pool.Put(used)
	}
}
