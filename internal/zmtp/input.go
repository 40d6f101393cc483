// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"io"
	"slices"
)

// firstBuffer is how large the buffer of a connection is at first: large enough that
// what a system call costs doesn't count, and small enough for a cache.
const firstBuffer = 256 << 10

// input is the bytes that were received and are not done with.
type input struct {
	buf        []byte // in use from begin to end
	begin, end int
	received   int64 // bytes, ever
}

// held are the bytes that are there.
func (i *input) held() []byte { return i.buf[i.begin:i.end] }

// offset is that of the first byte held, from the first byte that was received.
func (i *input) offset() int64 { return i.received - int64(i.end-i.begin) }

// drop forgets the first n bytes held.
func (i *input) drop(n int) { i.begin += n }

// maxEmptyReads is how often a connection may give nothing and no error.
const maxEmptyReads = 100

// read waits for bytes and adds them to those held.
func (i *input) read(r io.Reader) error {
	i.makeRoom()
	for range maxEmptyReads {
		n, err := r.Read(i.buf[i.end:])
		i.end += n
		i.received += int64(n)
		if n > 0 {
			return nil // an error comes again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom has room behind the bytes held. It grows the buffer only when it is full, to
// twice its size: so its size is bounded by what has come, whatever was announced.
func (i *input) makeRoom() {
	switch {
	case i.begin == i.end:
		i.begin, i.end = 0, 0
	case i.end < len(i.buf):
		return
	case i.begin > 0:
		i.end = copy(i.buf, i.held())
		i.begin = 0
	}
	if i.end == len(i.buf) {
		i.buf = slices.Grow(i.buf, max(len(i.buf), firstBuffer))
		i.buf = i.buf[:cap(i.buf)]
	}
}
