// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"fmt"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Offsets of the time and the sequence number in call events and markers, and of the time in thread names.
const (
	timeOffset       = 1
	sequenceOffset   = 5
	threadTimeOffset = 3
)

// message is one message of a data connection.
type message struct {
	bytes []byte
	// numbered means that it has a sequence number.
	numbered bool
	sequence uint32
	time     uint32 // milliseconds; of numbered messages
}

// next returns the message at the front of b.
func next(b []byte) (message, error) {
	t := bytefrog.MessageType(b[0])
	size := bytefrog.EventSize(t)
	if size == 0 {
		_, n, err := bytefrog.DecodeData(b, bytefrog.MaxString)
		if err != nil {
			return message{}, err
		}
		size = n
	}
	if size == 0 || size > len(b) {
		return message{}, fmt.Errorf("expected a whole %v, got its first %d bytes", t, len(b))
	}
	m := message{bytes: b[:size]}
	if t.IsEvent() || t == bytefrog.TypeMarker {
		m.numbered = true
		m.sequence = binary.BigEndian.Uint32(b[sequenceOffset:])
		m.time = binary.BigEndian.Uint32(b[timeOffset:])
	}
	return m, nil
}

// each calls f for each message of b. It contains only whole messages that were checked before.
func each(b []byte, f func(m message)) {
	for len(b) > 0 {
		m, err := next(b)
		if err != nil {
			panic("replay: a checked capture cannot be read: " + err.Error())
		}
		f(m)
		b = b[len(m.bytes):]
	}
}

// clock converts times of a round to times of the replay.
type clock struct {
	offset uint64  // milliseconds
	scale  float64 // 1 means as captured
}

func (c clock) convert(time uint32) uint32 {
	if c.scale == 1 {
		return uint32(c.offset) + time
	}
	return uint32(c.offset) + uint32(float64(time)*c.scale)
}

// appendMoved appends the messages of b to dst with later numbers and times.
func appendMoved(dst, b []byte, number uint32, times clock) []byte {
	from := len(dst)
	dst = append(dst, b...)
	each(dst[from:], func(m message) {
		switch {
		case m.numbered:
			binary.BigEndian.PutUint32(m.bytes[timeOffset:], times.convert(m.time))
			binary.BigEndian.PutUint32(m.bytes[sequenceOffset:], m.sequence+number)
		case bytefrog.MessageType(m.bytes[0]) == bytefrog.TypeMapThreadName:
			field := m.bytes[threadTimeOffset:]
			binary.BigEndian.PutUint32(field, times.convert(binary.BigEndian.Uint32(field)))
		}
	})
	return dst
}
