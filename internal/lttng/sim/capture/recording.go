// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Recordings returns each session that the viewer attached as a Recording. Its times are those of the relay daemon's
// replies. Its data is part of the capture's. It fails if the viewer did not list a session before, or did not read
// the packet of an index.
//
// A stream or session whose end is not in the capture never ends.
func (c *Capture) Recordings() ([]*lttnglive.Recording, error) {
	b := builder{listed: map[uint64]lttnglive.Session{}, streams: map[uint64]*stream{}}
	for _, e := range c.Exchanges {
		if err := b.addExchange(e); err != nil {
			return nil, fmt.Errorf("%s from byte %d, %s: %w", repliesFile, e.ReplyOffset, e.Request.Command(), err)
		}
	}
	var recordings []*lttnglive.Recording
	for _, s := range b.sessions {
		r, err := s.recording()
		if err != nil {
			return nil, fmt.Errorf("session %d: %w", r.Session.ID, err)
		}
		recordings = append(recordings, r)
	}
	return recordings, nil
}

// builder collects the content of exchanges, in order.
type builder struct {
	listed   map[uint64]lttnglive.Session
	sessions []*session // in order of attachment
	streams  map[uint64]*stream
}

type session struct {
	lttnglive.Session
	begin   time.Duration // of the capture
	end     time.Duration // since begin
	streams []*stream
}

type stream struct {
	lttnglive.RecordedStream
	session *session
	packets packets
}

func (b *builder) addExchange(e Exchange) error {
	switch request := e.Request.(type) {
	case lttnglive.ListSessionsRequest:
		for _, s := range e.Reply.(lttnglive.ListSessionsReply).Sessions {
			b.listed[s.ID] = s
		}
	case lttnglive.AttachSessionRequest:
		return b.attach(request.Session, e.Reply.(lttnglive.AttachSessionReply), e.At)
	case lttnglive.GetNewStreamsRequest:
		return b.newStreams(request.Session, e.Reply.(lttnglive.NewStreamsReply), e.At)
	case lttnglive.GetNextIndexRequest:
		if s := b.streams[request.Stream]; s != nil {
			s.index(e.Reply.(lttnglive.Index), e.At-s.session.begin)
		}
	case lttnglive.GetPacketRequest:
		reply := e.Reply.(lttnglive.PacketReply)
		if s := b.streams[request.Stream]; s != nil && reply.Status == lttnglive.PacketOK {
			return s.packets.addBytes(request.Offset, reply.Data)
		}
	case lttnglive.GetMetadataRequest:
		reply := e.Reply.(lttnglive.MetadataReply)
		if s := b.streams[request.Stream]; s != nil && reply.Status == lttnglive.MetadataOK {
			s.Pieces = append(s.Pieces, lttnglive.MetadataPiece{At: e.At - s.session.begin, Data: reply.Data})
		}
	}
	return nil
}

func (b *builder) attach(id uint64, reply lttnglive.AttachSessionReply, at time.Duration) error {
	if reply.Status != lttnglive.AttachOK || b.session(id) != nil {
		return nil
	}
	listed, ok := b.listed[id]
	if !ok {
		return fmt.Errorf("expected a session that was listed before, got %d", id)
	}
	s := &session{Session: listed, begin: at, end: lttnglive.Never}
	b.sessions = append(b.sessions, s)
	return b.addStreams(s, reply.Streams, at)
}

func (b *builder) newStreams(id uint64, reply lttnglive.NewStreamsReply, at time.Duration) error {
	s := b.session(id)
	if s == nil {
		return nil
	}
	if reply.Status == lttnglive.NewStreamsHangUp && s.end == lttnglive.Never {
		s.end = at - s.begin
	}
	return b.addStreams(s, reply.Streams, at)
}

func (b *builder) addStreams(s *session, sent []lttnglive.Stream, at time.Duration) error {
	for _, t := range sent {
		if b.streams[t.ID] != nil {
			return fmt.Errorf("expected stream %d once, got it again", t.ID)
		}
		added := &stream{session: s, RecordedStream: lttnglive.RecordedStream{
			Stream: t, At: at - s.begin, End: lttnglive.Never,
		}}
		b.streams[t.ID] = added
		s.streams = append(s.streams, added)
	}
	return nil
}

func (b *builder) session(id uint64) *session {
	for _, s := range b.sessions {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// index adds a step. It ignores a repeated promise.
func (s *stream) index(index lttnglive.Index, at time.Duration) {
	index.Flags = 0
	switch index.Status {
	case lttnglive.IndexInactive:
		if n := len(s.Steps); n > 0 && s.Steps[n-1].Index == index {
			return
		}
		fallthrough
	case lttnglive.IndexOK:
		s.Steps = append(s.Steps, lttnglive.Step{At: at, Index: index})
	case lttnglive.IndexHangUp:
		s.End = min(s.End, at)
	}
}

func (s *session) recording() (*lttnglive.Recording, error) {
	r := &lttnglive.Recording{Session: s.Session, End: s.end}
	for _, stream := range s.streams {
		if err := stream.arrange(); err != nil {
			return r, fmt.Errorf("stream %d: %w", stream.ID, err)
		}
		r.Streams = append(r.Streams, stream.RecordedStream)
	}
	return r, nil
}

// arrange sorts the stream's packets, and checks that they are complete.
func (s *stream) arrange() error {
	if s.Metadata {
		return nil
	}
	if err := s.packets.arrange(); err != nil {
		return err
	}
	for _, step := range s.Steps {
		index := step.Index
		if index.Status == lttnglive.IndexOK && !s.packets.contains(index.Offset, index.ContentLength()) {
			return fmt.Errorf("expected a request of the viewer for the packet at %d with its %d bytes of content, got none", index.Offset, index.ContentLength())
		}
	}
	s.Packets = s.packets
	return nil
}

// packets contains the bytes that were read from a stream. arrange sorts them.
type packets []bytesAt

type bytesAt struct {
	offset uint64
	bytes  []byte
}

func (b bytesAt) end() uint64 { return b.offset + uint64(len(b.bytes)) }

func (p *packets) addBytes(offset uint64, b []byte) error {
	// addBytes adds bytes at an offset.
	if offset > math.MaxInt64-math.MaxUint32 {
		return fmt.Errorf("expected a packet whose end is below offset 2^63, got one at %d", offset)
	}
	if len(b) > 0 {
		*p = append(*p, bytesAt{offset: offset, bytes: b})
	}
	return nil
}

// arrange sorts the bytes by offset. It removes bytes that were read again.
func (p *packets) arrange() error {
	slices.SortStableFunc(*p, func(a, b bytesAt) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(b.end(), a.end()))
	})
	*p = slices.CompactFunc(*p, func(a, b bytesAt) bool { return a.offset == b.offset })
	for i := 1; i < len(*p); i++ {
		if end := (*p)[i-1].end(); end > (*p)[i].offset {
			return fmt.Errorf("expected bytes from offset %d that do not overlap with others, got a part of those from %d to %d", (*p)[i].offset, (*p)[i-1].offset, end)
		}
	}
	return nil
}

// ReadAt fails with io.ErrUnexpectedEOF if the viewer did not read the bytes.
func (p packets) ReadAt(b []byte, offset int64) (int, error) {
	n := 0
	for n < len(b) {
		part := p.part(uint64(offset) + uint64(n))
		if part == nil {
			return n, io.ErrUnexpectedEOF
		}
		n += copy(b[n:], part)
	}
	return n, nil
}

// part returns the bytes from an offset to the end of the piece that contains it.
func (p packets) part(offset uint64) []byte {
	i, found := slices.BinarySearchFunc(p, offset, func(b bytesAt, offset uint64) int { return cmp.Compare(b.offset, offset) })
	if !found {
		i--
	}
	if i < 0 || offset >= p[i].end() {
		return nil
	}
	return p[i].bytes[offset-p[i].offset:]
}

// contains reports whether the bytes are complete.
func (p packets) contains(offset, length uint64) bool {
	for n := uint64(0); n < length; {
		part := p.part(offset + n)
		if part == nil {
			return false
		}
		n += uint64(len(part))
	}
	return true
}
