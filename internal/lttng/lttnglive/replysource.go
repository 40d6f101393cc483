// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "errors"

// replySource is the source of a reply: a connection, or bytes.
type replySource interface {
	// next returns the next n bytes. They are valid until the next call.
	next(n int) ([]byte, error)
	// data returns the next n bytes in dst if it has the capacity, otherwise in a larger buffer.
	data(dst []byte, n int) ([]byte, error)
	// offset returns the number of bytes of the reply that were read.
	offset() int
}

// errIncomplete means that the bytes end inside a reply.
var errIncomplete = errors.New("the reply is not complete")

// byteSource reads a reply from the front of bytes. It does not copy its data.
type byteSource struct {
	b    []byte
	used int
}

func (s *byteSource) next(n int) ([]byte, error) {
	if n > len(s.b)-s.used {
		return nil, errIncomplete
	}
	s.used += n
	return s.b[s.used-n : s.used : s.used], nil
}

func (s *byteSource) data(_ []byte, n int) ([]byte, error) { return s.next(n) }

func (s *byteSource) offset() int { return s.used }
