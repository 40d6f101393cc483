// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// reading reads one message and counts its bytes.
type reading struct {
	from   *bufio.Reader
	offset int // bytes of the message that were read
}

// next reads n bytes. n is small. name is their name for errors.
func (r *reading) next(n int, name string) ([]byte, error) {
	b := make([]byte, n)
	got, err := io.ReadFull(r.from, b)
	return b, r.count(got, n, name, err)
}

// readAtOnce is the initial size of a buffer.
const readAtOnce = 4096

// bytes reads n bytes into memory that grows while they arrive.
func (r *reading) bytes(n int, name string) ([]byte, error) {
	var b []byte
	for len(b) < n {
		before := len(b)
		b = append(b, make([]byte, min(n-before, max(readAtOnce, before)))...)
		if got, err := io.ReadFull(r.from, b[before:]); err != nil {
			return nil, r.count(before+got, n, name, err)
		}
	}
	return b, r.count(n, n, name, nil)
}

// texts reads n texts with their NULs, of at most most bytes together.
func (r *reading) texts(n, most int) ([]byte, error) {
	var b []byte
	for n > 0 {
		c, err := r.from.ReadByte()
		if err != nil {
			return nil, r.count(0, 1, "names", err)
		}
		if r.offset++; len(b) == most {
			return nil, &ProtocolError{r.offset - 1, fmt.Sprintf("at most %d bytes of names", most), "more"}
		}
		if b = append(b, c); c == 0 {
			n--
		}
	}
	return b, nil
}

// count counts got of n bytes, and wraps err if there was one. The end of the connection is io.EOF before a message,
// and io.ErrUnexpectedEOF inside it.
func (r *reading) count(got, n int, name string, err error) error {
	start := r.offset
	if r.offset += got; err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) && r.offset > 0 {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("byte %d: expected %d bytes of %s, got %d: %w", start, n, name, got, err)
}
