// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "errors"

// replySource is where a reply comes from: a connection, or bytes that are there.
type replySource interface {
	// next gives the next n bytes. They are valid until the next call.
	next(n int) ([]byte, error)
	// data gives the next n bytes in dst, from its beginning, as far as there is room
	// in it, or else in a larger one.
	data(dst []byte, n int) ([]byte, error)
	// offset is how many bytes of the reply were taken.
	offset() int
}

// errIncomplete says that bytes end inside a reply.
var errIncomplete = errors.New("the reply is not complete")

// byteSource takes a reply from the front of bytes. Its data is not copied.
type byteSource struct {
	b     []byte
	taken int
}

func (s *byteSource) next(n int) ([]byte, error) {
	if n > len(s.b)-s.taken {
		return nil, errIncomplete
	}
	s.taken += n
	return s.b[s.taken-n : s.taken : s.taken], nil
}

func (s *byteSource) data(_ []byte, n int) ([]byte, error) { return s.next(n) }

func (s *byteSource) offset() int { return s.taken }
