// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

// buffers are the bytes of a session's packets: those that wait to be read are counted,
// those that were read are kept to be used again.
type buffers struct {
	// most bounds the bytes of both together; 0: those to be used again have bounds of
	// their own only.
	most int
	// held is how many bytes of packets wait to be read, in all traces.
	held int
	free [][]byte
	// bytes is how many they have together.
	bytes int
}

// maxFreeBuffers and maxFreeBytes bound the buffers that wait for use.
const (
	maxFreeBuffers = 64
	maxFreeBytes   = 64 * mib
)

// fits reports whether a packet of that size can wait beside the others.
func (b *buffers) fits(size uint64) bool {
	return b.held <= b.most && size <= uint64(b.most-b.held)
}

// isFull reports whether there is no room for what is read ahead: half of it is for
// streams that others wait for.
func (b *buffers) isFull() bool { return b.held >= b.most/2 }

func (b *buffers) give(data []byte) {
	if len(b.free) < maxFreeBuffers && b.bytes+cap(data) <= b.mayKeep(0) {
		b.free = append(b.free, data[:0])
		b.bytes += cap(data)
	}
}

// mayKeep is how many bytes may be kept for use beside those that are held, and so many
// more.
func (b *buffers) mayKeep(more int) int {
	if b.most == 0 {
		return maxFreeBytes
	}
	return max(0, min(maxFreeBytes, b.most-b.held-more))
}

// take is the smallest buffer of at least that size, if there is one; nil otherwise: a
// large one is not to wait with a small packet in it.
func (b *buffers) take(size uint64) []byte {
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

// room is a buffer of that size, which has to fit or is one more than does. It costs
// those that are kept.
func (b *buffers) room(size uint64) []byte {
	if data := b.take(size); data != nil {
		if uint64(cap(data)) == size || b.fits(uint64(cap(data))) {
			return data
		}
	}
	for most := b.mayKeep(int(size)); b.bytes > most; {
		b.remove(len(b.free) - 1)
	}
	return make([]byte, size)
}

// remove takes a buffer out of those that are kept.
func (b *buffers) remove(i int) []byte {
	data, last := b.free[i], len(b.free)-1
	b.free[i], b.free[last] = b.free[last], nil
	b.free = b.free[:last]
	b.bytes -= cap(data)
	return data[:cap(data)]
}
