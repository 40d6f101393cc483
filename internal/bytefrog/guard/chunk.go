// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "sync"

const kib, mib = 1 << 10, 1 << 20

// chunkBytes is the size of one read of a connection.
const chunkBytes = 64 * kib

// chunk is a piece of the data of a connection. A reader fills it and passes it to a writer, without a copy.
type chunk struct {
	buf []byte
	// buf[begin:end] is filled. begin is 0 until a part was written.
	begin, end int
}

func (c *chunk) bytes() []byte { return c.buf[c.begin:c.end] }

// empty removes all bytes.
func (c *chunk) empty() { c.begin, c.end = 0, 0 }

// fill copies as many bytes behind the others as there is room for, and returns their number.
func (c *chunk) fill(b []byte) (n int) {
	n = copy(c.buf[c.end:], b)
	c.end += n
	return n
}

// left returns the number of bytes for which there is room.
func (c *chunk) left() int { return len(c.buf) - c.end }

// fillBytes is the least room of a waiting chunk that is filled up. Bytes that do not fit have to move to the front of
// their own chunk.
const fillBytes = chunkBytes / 16

// drop removes the first n bytes, and moves the others to the front.
func (c *chunk) drop(n int) {
	c.end = copy(c.buf, c.buf[c.begin+n:c.end])
	c.begin = 0
}

// chunks are unused chunks.
type chunks struct{ pool sync.Pool }

// get returns an empty chunk of at least so many bytes.
func (c *chunks) get(size int) *chunk {
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
