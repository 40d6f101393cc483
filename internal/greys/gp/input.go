// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"io"

	"github.com/callbraid/callbraid/internal/greys"
)

// Sizes of a connection's buffer.
const (
	usualBuffer = 64 << 10
	// keptBuffer is the largest buffer that stays after a long frame.
	keptBuffer = 1 << 20
	// maxEmptyReads is the number of consecutive reads that may return neither bytes nor an error.
	maxEmptyReads = 100
)

// input reads pieces of a stream. Its buffer grows with the received bytes, never with a length in a header.
type input struct {
	from       io.Reader
	buf        []byte // used from begin to end
	begin, end int
	received   int64 // the total number of bytes
	memory     greys.Reservation
}

// offset returns the stream offset of the next byte.
func (i *input) offset() int64 { return i.received - int64(i.end-i.begin) }

// next waits for n bytes and returns them. They are valid until the next call. The error is the reader's; at the end of
// the stream io.EOF if there were none of them, otherwise io.ErrUnexpectedEOF.
func (i *input) next(n int) ([]byte, error) {
	if i.begin == i.end {
		i.begin, i.end = 0, 0
		if len(i.buf) > keptBuffer {
			i.buf = nil
		}
	}
	for i.end-i.begin < n {
		if err := i.read(n); err != nil {
			if err == io.EOF && i.end > i.begin {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	piece := i.buf[i.begin : i.begin+n]
	i.begin += n
	return piece, nil
}

// skip waits for n bytes and drops them as they arrive. The error is the reader's; at the end of the stream
// io.ErrUnexpectedEOF.
func (i *input) skip(n int64) error {
	for n > 0 {
		piece := min(n, int64(max(1, i.end-i.begin)))
		if _, err := i.next(int(piece)); err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
		n -= piece
	}
	return nil
}

// read waits for more bytes. The caller needs n consecutive bytes.
func (i *input) read(n int) error {
	switch {
	case i.buf == nil:
		if err := i.memory.Resize(usualBuffer); err != nil {
			return err
		}
		i.buf = make([]byte, usualBuffer)
	case i.begin > 0 && i.begin+n > len(i.buf):
		i.begin, i.end = 0, copy(i.buf, i.buf[i.begin:i.end])
	case i.end == len(i.buf):
		if err := i.memory.Resize(2 * len(i.buf)); err != nil {
			return err
		}
		buf := make([]byte, 2*len(i.buf))
		i.begin, i.end, i.buf = 0, copy(buf, i.buf[i.begin:i.end]), buf
	}
	for range maxEmptyReads {
		got, err := i.from.Read(i.buf[i.end:])
		i.end += got
		i.received += int64(got)
		if got > 0 {
			return nil // the next read returns the error again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
