// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

// buffers are the buffers of a session's packets. It counts packets that wait for reading, and keeps the buffers of
// finished packets for reuse.
type buffers struct {
	// most bounds the bytes of both together; 0: only buffers for reuse are bounded. ahead is the size of waiting
	// packets from which only streams are read that others wait for.
	most, ahead int
	// held is the size of the packets that wait to be read, in all traces.
	held int
	free [][]byte
	// bytes is the size of the free buffers.
	bytes int
}

// maxFreeBuffers and maxFreeBytes bound the buffers for reuse.
const (
	maxFreeBuffers = 64
	maxFreeBytes   = 64 << 20
)

func newBuffers(limits *Limits) buffers {
	b := buffers{most: limits.WaitingBytes, ahead: limits.WaitingBytes / 2}
	if limits.AheadBytes > 0 {
		b.ahead = min(b.ahead, limits.AheadBytes)
	}
	return b
}

// fits reports whether a packet of that size fits in addition to the waiting ones.
func (b *buffers) fits(size uint64) bool {
	return b.held <= b.most && size <= uint64(b.most-b.held)
}

// isFull reports whether there is no room to read ahead: the rest of the room is for streams that others
// wait for.
func (b *buffers) isFull() bool { return b.held >= b.ahead }

// release keeps a buffer for reuse, if there is room.
func (b *buffers) release(data []byte) {
	if len(b.free) < maxFreeBuffers && b.bytes+cap(data) <= b.maxFree(0) {
		b.free = append(b.free, data[:0])
		b.bytes += cap(data)
	}
}

// maxFree returns the maximum size of the free buffers, in addition to the waiting packets and more bytes.
func (b *buffers) maxFree(more int) int {
	if b.most == 0 {
		return maxFreeBytes
	}
	return max(0, min(maxFreeBytes, b.most-b.held-more))
}

// smallest returns the smallest free buffer of at least that size, or nil.
func (b *buffers) smallest(size uint64) []byte {
	best := -1
	for i := range b.free {
		if n := cap(b.free[i]); uint64(n) >= size && (best < 0 || n < cap(b.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return b.remove(best)
}

// buffer returns a buffer of that size. A packet of that size fits, or it is the one that may exceed the bound. Free
// buffers that no longer fit are dropped.
func (b *buffers) buffer(size uint64) []byte {
	if data := b.smallest(size); data != nil {
		if uint64(cap(data)) == size || b.fits(uint64(cap(data))) {
			return data
		}
	}
	for most := b.maxFree(int(size)); b.bytes > most; {
		b.remove(len(b.free) - 1)
	}
	return make([]byte, size)
}

// remove removes a free buffer and returns it.
func (b *buffers) remove(i int) []byte {
	data, last := b.free[i], len(b.free)-1
	b.free[i], b.free[last] = b.free[last], nil
	b.free = b.free[:last]
	b.bytes -= cap(data)
	return data[:cap(data)]
}

// clear drops all free buffers.
func (b *buffers) clear() { b.free, b.bytes = nil, 0 }
