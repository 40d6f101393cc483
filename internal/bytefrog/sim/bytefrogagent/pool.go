// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

// Buffer is a send buffer. The program appends whole messages to Data; it may grow
// beyond its size for a message that is longer.
type Buffer struct {
	Data []byte
	// Events is the number of call events and markers in Data.
	Events int

	size int
}

// Room is the number of bytes that still fit.
func (b *Buffer) Room() int { return b.size - len(b.Data) }

// Bounds of the pool, as the agent has them.
const (
	minBuffers    = 10
	minBufferSize = 128
)

// pool is the bounded memory of the send buffers. It makes them when they are first
// needed.
type pool struct {
	free []*Buffer
	made int
	most int
	size int
}

// newPool divides budget bytes into buffers of at most size. ok is false if it is too
// small for any.
func newPool(budget, size int) (p pool, ok bool) {
	size = min(size, budget/minBuffers)
	if budget < minBuffers*minBufferSize || size <= 0 {
		return pool{}, false
	}
	return pool{most: budget / size, size: size}, true
}

// take returns an empty buffer, or nil if none is free.
func (p *pool) take() *Buffer {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	if p.made == p.most {
		return nil
	}
	p.made++
	return &Buffer{Data: make([]byte, 0, p.size), size: p.size}
}

func (p *pool) put(b *Buffer) {
	if cap(b.Data) > 2*p.size {
		b.Data = make([]byte, 0, p.size) // grown by a long message
	}
	b.Data, b.Events = b.Data[:0], 0
	p.free = append(p.free, b)
}
