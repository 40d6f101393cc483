// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "io"

// Sizes of the buffer of a connection: at first, which is enough for a system call to
// cost little; and where much would have to be moved in it, so that this is seldom.
const (
	firstBuffer = 128 << 10
	largeBuffer = 1 << 20
	muchToMove  = 16 << 10
)

// input is the bytes that were received and are not done with.
type input struct {
	buf        []byte // in use from begin to end
	begin, end int
	received   int64 // bytes, ever
	// room is asked before buf grows; nil: there is always room.
	room func(bytes int) error
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
	if err := i.makeRoom(); err != nil {
		return err
	}
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

// makeRoom has room behind the bytes held. Beyond largeBuffer the buffer grows only when
// it is full, to twice its size: so its size is bounded by what has come, whatever was
// announced.
func (i *input) makeRoom() error {
	held := i.held()
	switch {
	case len(held) == 0:
		i.begin, i.end = 0, 0
		if i.buf == nil {
			return i.moveTo(firstBuffer)
		}
	case i.end < len(i.buf):
	case i.begin > 0 && (len(held) < muchToMove || len(i.buf) >= largeBuffer):
		i.begin, i.end = 0, copy(i.buf, held)
	default:
		return i.moveTo(max(2*len(held), largeBuffer))
	}
	return nil
}

// moveTo moves the bytes held to a new buffer.
func (i *input) moveTo(size int) error {
	if i.room != nil {
		// Both are there while bytes are moved.
		if err := i.room(size + len(i.buf)); err != nil {
			return err
		}
	}
	buf := make([]byte, size)
	i.begin, i.end, i.buf = 0, copy(buf, i.held()), buf
	if i.room != nil {
		return i.room(size)
	}
	return nil
}
