// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"io"

	"github.com/callbraid/callbraid/internal/greys"
)

// Sizes of the buffer of a connection.
const (
	usualBuffer = 64 << 10
	// keptBuffer is how large a buffer may be that a long frame left behind.
	keptBuffer = 1 << 20
	// maxEmptyReads is how often a connection may give nothing and no error.
	maxEmptyReads = 100
)

// input gives bytes of a reader in pieces. Its buffer grows as bytes come, and never
// because a header says that they will.
type input struct {
	from       io.Reader
	buf        []byte // in use from begin to end
	begin, end int
	received   int64 // bytes, ever
	room       greys.Room
}

// offset is that of the next byte, from the first one received.
func (i *input) offset() int64 { return i.received - int64(i.end-i.begin) }

// take waits for n bytes, and gives them: they are valid until the next call. The error is
// the reader's; at its end io.EOF where none of them came, else io.ErrUnexpectedEOF.
func (i *input) take(n int) ([]byte, error) {
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

// skip waits for n bytes, and lets go of them as they come. The error is the reader's, at its
// end io.ErrUnexpectedEOF.
func (i *input) skip(n int64) error {
	for n > 0 {
		piece := min(n, int64(max(1, i.end-i.begin)))
		if _, err := i.take(int(piece)); err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
		n -= piece
	}
	return nil
}

// read waits for more bytes, of which n are wanted in one piece.
func (i *input) read(n int) error {
	switch {
	case i.buf == nil:
		if err := i.room.Hold(usualBuffer); err != nil {
			return err
		}
		i.buf = make([]byte, usualBuffer)
	case i.begin > 0 && i.begin+n > len(i.buf):
		i.begin, i.end = 0, copy(i.buf, i.buf[i.begin:i.end])
	case i.end == len(i.buf):
		if err := i.room.Hold(2 * len(i.buf)); err != nil {
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
			return nil // an error comes again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
