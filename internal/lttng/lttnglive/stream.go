// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"fmt"
)

// Stream is the entry of a stream of an attached session.
type Stream struct {
	ID       uint64 // unique among all sessions of a relay daemon
	TraceID  uint64 // streams with the same ID are one CTF trace with one metadata stream
	Metadata bool   // the stream has metadata and no packets: use "get metadata"
	Path     string // of the trace, in the relay daemon's folder of the session: "ust/uid/0/64-bit"
	Channel  string // with the number of the CPU: "channel0_1", or "metadata"
}

// Sizes in bytes of a stream's parts. The texts end with a NUL.
const (
	streamCommon       = 20 // ID, trace ID, metadata flag
	streamPathField    = 4096
	streamChannelField = 255
	streamSize         = streamCommon + streamPathField + streamChannelField
)

// appendStream appends the bytes of the entry. It truncates texts that are too long for their fields.
func appendStream(b []byte, s Stream) []byte {
	b = binary.BigEndian.AppendUint64(b, s.ID)
	b = binary.BigEndian.AppendUint64(b, s.TraceID)
	metadata := uint32(0)
	if s.Metadata {
		metadata = 1
	}
	b = binary.BigEndian.AppendUint32(b, metadata)
	b = appendField(b, s.Path, streamPathField)
	return appendField(b, s.Channel, streamChannelField)
}

func readStream(from replySource) (Stream, error) {
	start := from.offset()
	b, err := from.next(streamSize)
	if err != nil {
		return Stream{}, err
	}
	s := Stream{ID: binary.BigEndian.Uint64(b), TraceID: binary.BigEndian.Uint64(b[8:])}
	switch flag := binary.BigEndian.Uint32(b[16:]); flag {
	case 0:
	case 1:
		s.Metadata = true
	default:
		return Stream{}, &ProtocolError{Offset: start + 16, Expected: "0 or 1 as a stream's metadata flag", Got: fmt.Sprint(flag)}
	}
	path, channel := b[streamCommon:streamCommon+streamPathField], b[streamCommon+streamPathField:]
	if s.Path, err = fieldText(path, start+streamCommon, "the path of a stream"); err != nil {
		return Stream{}, err
	}
	if s.Channel, err = fieldText(channel, start+streamCommon+streamPathField, "the channel of a stream"); err != nil {
		return Stream{}, err
	}
	return s, nil
}

// readStreams reads n streams. It allocates memory for the received streams, not for n.
func readStreams(from replySource, n uint32) ([]Stream, error) {
	var streams []Stream
	for range n {
		s, err := readStream(from)
		if err != nil {
			return nil, err
		}
		streams = append(streams, s)
	}
	return streams, nil
}
