// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctfdir

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// readAhead is the number of bytes that are read to find the size of a packet. growBy is the maximum growth of the
// buffer beyond doubling.
const (
	readAhead = 4 << 10
	growBy    = 1 << 20
)

// Stream reads the packets of one file.
type Stream struct {
	// Reader has opened the packet that Next returned.
	Reader *ctf.Reader
	// Offset is the offset of that packet in the file, in bytes.
	Offset int64

	name string
	file io.ReadCloser
	// sizer finds the lengths of packets. It is separate from Reader because that one compares packets with the
	// previous one.
	sizer *ctf.Reader
	// buffer holds bytes of the file. Its first packet bytes are the current packet.
	buffer []byte
	packet int
	ended  bool
}

// Stream opens a file of packets.
func (d *Dir) Stream(name string) (*Stream, error) {
	name = path.Join(d.Name, name)
	f, err := d.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	return &Stream{name: name, file: f, Reader: ctf.NewReader(d.Trace), sizer: ctf.NewReader(d.Trace)}, nil
}

// Close closes the file.
func (s *Stream) Close() error { return s.file.Close() }

// Next returns the bytes of the next packet with its padding, and opens it with Reader. They are valid until the next
// call. At the end of the file it returns io.EOF.
func (s *Stream) Next() ([]byte, error) {
	s.Offset += int64(s.packet)
	s.buffer = s.buffer[:copy(s.buffer, s.buffer[s.packet:])]
	s.packet = 0
	size, err := s.size()
	if err == nil {
		err = s.fill(size)
	}
	if err == nil && len(s.buffer) < size {
		err = fmt.Errorf("expected a packet of %d bytes, got %d: %w", size, len(s.buffer), io.ErrUnexpectedEOF)
	}
	if err == nil {
		s.packet = size
		err = s.Reader.Begin(s.buffer[:size:size])
	}
	switch {
	case err == nil:
		return s.buffer[:size:size], nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	return nil, fmt.Errorf("%s: packet at byte %d: %w", s.name, s.Offset, err)
}

// size returns the size of the packet at the start of the buffer.
func (s *Stream) size() (int, error) {
	for want := readAhead; ; want *= 2 {
		if err := s.fill(want); err != nil {
			return 0, err
		}
		if len(s.buffer) == 0 {
			return 0, io.EOF
		}
		size, err := s.sizer.Size(s.buffer)
		if size > 0 || err != nil && (!errors.Is(err, io.ErrUnexpectedEOF) || s.ended) {
			return size, err
		}
		if s.ended {
			return len(s.buffer), nil // a packet without sizes is the rest of the file
		}
		if want > ctf.MaxPacketBytes {
			return 0, fmt.Errorf("expected a packet of at most %d bytes, got more", ctf.MaxPacketBytes)
		}
	}
}

// fill reads until the buffer has n bytes or the file ends. The buffer grows with the bytes read, not to the size
// that a packet claims.
func (s *Stream) fill(n int) error {
	for len(s.buffer) < n && !s.ended {
		if cap(s.buffer)-len(s.buffer) == 0 {
			grown := make([]byte, len(s.buffer), min(max(n, readAhead), 2*len(s.buffer)+growBy))
			copy(grown, s.buffer)
			s.buffer = grown
		}
		free := s.buffer[len(s.buffer):min(cap(s.buffer), n)]
		got, err := s.file.Read(free)
		s.buffer = s.buffer[:len(s.buffer)+got]
		switch {
		case errors.Is(err, io.EOF):
			s.ended = true
		case err != nil:
			return err
		}
	}
	return nil
}
