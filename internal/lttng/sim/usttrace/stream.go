// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// packetSize is the size of a sub-buffer, LTTng-UST's default.
const packetSize = 128 << 10

// The start of data packets, and the offsets of values that are only known at their end.
const (
	packetMagic    = 0xC1FC1FC1
	endAt          = 4 + 16 + 4 + 8 + 8
	contentAt      = endAt + 8
	fileBufferSize = 1 << 20
)

// stream writes the packets of one channel and CPU.
type stream struct {
	channel, cpu int
	file         *os.File
	out          *bufio.Writer
	packet       []byte
	packets      uint64
	// last is the time of the last event, or of the packet's begin.
	last uint64
}

func newStream(dir string, channel, cpu int) (*stream, error) {
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s_%d", channelNames[channel], cpu)))
	if err != nil {
		return nil, err
	}
	return &stream{
		channel: channel, cpu: cpu, file: file, out: bufio.NewWriterSize(file, fileBufferSize),
		packet: make([]byte, 0, packetSize),
	}, nil
}

// event writes an event: its header, and then content, which are contexts and fields. If it does not fit, it begins
// the next packet.
func (s *stream) event(at uint64, id uint32, content []byte) error {
	const largestHeader = 2 + 4 + 8
	if len(s.packet)+largestHeader+len(content) > packetSize {
		s.last = at // LTTng ends a full packet where the next one begins
		if err := s.flush(); err != nil {
			return err
		}
	}
	if len(s.packet) == 0 {
		s.begin(at)
	}
	if s.channel == channelCalls {
		s.largeHeader(at, id)
	} else {
		s.compactHeader(at, id)
	}
	s.packet = append(s.packet, content...)
	s.last = at
	return nil
}

// begin opens a packet.
func (s *stream) begin(at uint64) {
	le := binary.LittleEndian
	b := le.AppendUint32(s.packet, packetMagic)
	b = append(b, uuid[:]...)
	b = le.AppendUint32(b, uint32(s.channel))
	b = le.AppendUint64(b, uint64(s.cpu)) // the instance
	b = le.AppendUint64(b, at)
	b = le.AppendUint64(b, 0) // the end, not known yet
	b = le.AppendUint64(b, 0) // the content's size, not known yet
	b = le.AppendUint64(b, packetSize*8)
	b = le.AppendUint64(b, s.packets)
	b = le.AppendUint64(b, 0) // events discarded
	s.packet = le.AppendUint32(b, uint32(s.cpu))
	s.last = at
}

// largeHeader writes 16 bits of ID and 32 of time, or the full ID and time if the short time would be ambiguous.
func (s *stream) largeHeader(at uint64, id uint32) {
	le := binary.LittleEndian
	if at-s.last < 1<<32 {
		s.packet = le.AppendUint32(le.AppendUint16(s.packet, uint16(id)), uint32(at))
		return
	}
	s.packet = le.AppendUint64(le.AppendUint32(le.AppendUint16(s.packet, 1<<16-1), id), at)
}

// compactHeader writes 5 bits of ID and 27 of time, or the full ones like largeHeader.
func (s *stream) compactHeader(at uint64, id uint32) {
	le := binary.LittleEndian
	if at-s.last < 1<<27 {
		s.packet = le.AppendUint32(s.packet, id|uint32(at)<<5)
		return
	}
	s.packet = le.AppendUint64(le.AppendUint32(append(s.packet, 1<<5-1), id), at)
}

// flush writes the packet, with padding after its content.
func (s *stream) flush() error {
	if len(s.packet) == 0 {
		return nil
	}
	content := len(s.packet)
	binary.LittleEndian.PutUint64(s.packet[endAt:], s.last)
	binary.LittleEndian.PutUint64(s.packet[contentAt:], uint64(content)*8)
	s.packet = s.packet[:packetSize]
	clear(s.packet[content:])
	_, err := s.out.Write(s.packet)
	s.packet = s.packet[:0]
	s.packets++
	return err
}

// close writes the last packet and closes the file.
func (s *stream) close() error {
	return errors.Join(s.flush(), s.out.Flush(), s.file.Close())
}
