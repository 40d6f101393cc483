// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "io"

// Sizes of the buffer of a connection. firstBuffer is large enough for few system calls. From
// muchToMove bytes on, moving them is too expensive to do often.
const (
	firstBuffer = 128 << 10
	largeBuffer = 1 << 20
	muchToMove  = 16 << 10
)

// input has the received bytes that are still needed.
type input struct {
	buf        []byte // in use from begin to end
	begin, end int
	received   int64 // bytes since the begin of the connection
	// room is called before buf grows; nil: any size is allowed.
	room func(bytes int) error
}

// held returns the bytes in the buffer.
func (i *input) held() []byte { return i.buf[i.begin:i.end] }

// offset returns the offset of the first byte held, from the first received byte.
func (i *input) offset() int64 { return i.received - int64(i.end-i.begin) }

// drop drops the first n bytes held.
func (i *input) drop(n int) { i.begin += n }

// maxEmptyReads bounds the successive reads without bytes and without an error.
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
			return nil // the next read returns the error again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom makes room after the bytes held. Beyond largeBuffer the buffer grows only when it is
// full, to twice its size. So the received bytes bound its size, and announced sizes don't.
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
		// Both buffers exist while bytes are moved.
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
