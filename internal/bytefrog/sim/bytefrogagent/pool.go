// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

// Buffer is a send buffer. The program appends whole messages to Data. It may grow beyond its size for a longer
// message.
type Buffer struct {
	Data []byte
	// Events is the number of call events and markers in Data.
	Events int

	size int
}

// Room returns the number of bytes that still fit.
func (b *Buffer) Room() int { return b.size - len(b.Data) }

// Limits of the agent's pool.
const (
	minBuffers    = 10
	minBufferSize = 128
)

// pool is the limited memory of the send buffers. It creates a buffer when the buffer is first needed.
type pool struct {
	free []*Buffer
	made int
	most int
	size int
}

// newPool divides budget bytes into buffers of at most size. ok is false if the budget is too small.
func newPool(budget, size int) (p pool, ok bool) {
	size = min(size, budget/minBuffers)
	if budget < minBuffers*minBufferSize || size <= 0 {
		return pool{}, false
	}
	return pool{most: budget / size, size: size}, true
}

// get returns an empty buffer, or nil if none is free.
func (p *pool) get() *Buffer {
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
		b.Data = make([]byte, 0, p.size) // a long message has enlarged it
	}
	b.Data, b.Events = b.Data[:0], 0
	p.free = append(p.free, b)
}
