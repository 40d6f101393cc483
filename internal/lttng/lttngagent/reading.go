// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// reading reads one message, and knows how far it is.
type reading struct {
	from   *bufio.Reader
	offset int // bytes of the message that were read
}

// next reads the n bytes of what is named. n is small.
func (r *reading) next(n int, what string) ([]byte, error) {
	b := make([]byte, n)
	got, err := io.ReadFull(r.from, b)
	return b, r.took(got, n, what, err)
}

// readAtOnce is how many bytes are believed to come before any did.
const readAtOnce = 4096

// bytes reads the n bytes of what is named, in memory that grows as they arrive.
func (r *reading) bytes(n int, what string) ([]byte, error) {
	var b []byte
	for len(b) < n {
		before := len(b)
		b = append(b, make([]byte, min(n-before, max(readAtOnce, before)))...)
		if got, err := io.ReadFull(r.from, b[before:]); err != nil {
			return nil, r.took(before+got, n, what, err)
		}
	}
	return b, r.took(n, n, what, nil)
}

// texts reads n texts with their NULs, of at most so many bytes together.
func (r *reading) texts(n, most int) ([]byte, error) {
	var b []byte
	for n > 0 {
		c, err := r.from.ReadByte()
		if err != nil {
			return nil, r.took(0, 1, "names", err)
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

// took notes that of n bytes of what is named some came, before err if there was one.
// The end of the connection is io.EOF in front of a message, and io.ErrUnexpectedEOF
// inside it.
func (r *reading) took(got, n int, what string, err error) error {
	start := r.offset
	if r.offset += got; err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) && r.offset > 0 {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("byte %d: expected %d bytes of %s, got %d: %w", start, n, what, got, err)
}
