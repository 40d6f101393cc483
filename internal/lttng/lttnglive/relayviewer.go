// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// relayViewer is the Relay's state for one viewer: its version, its attached sessions and its progress in them. It
// has one method for each request.
type relayViewer struct {
	relay     *Relay
	connected bool
	minor     uint32 // agreed
	created   bool   // its session
	readings  []*reading
}

// unknownCommand returns the reply to a command that the protocol does not have.
func unknownCommand() []byte { return binary.BigEndian.AppendUint32(nil, unknownCommandReply) }

// answer appends the reply to a request. After an error, a relay daemon closes the connection.
func (v *relayViewer) answer(b []byte, r Request) ([]byte, error) {
	if connect, ok := r.(ConnectRequest); ok {
		reply, err := v.connect(connect)
		if err != nil {
			return b, err
		}
		return reply.AppendTo(b, v.minor), nil
	}
	if !v.connected {
		return b, &ProtocolError{Offset: 8, Expected: "connect as the first command", Got: r.Command().String()}
	}
	var reply Reply
	switch r := r.(type) {
	case ListSessionsRequest:
		reply = ListSessionsReply{Sessions: v.relay.list(v.minor)}
	case AttachSessionRequest:
		reply = v.attach(r)
	case GetNextIndexRequest:
		reply = v.nextIndex(r)
	case GetPacketRequest:
		return v.packet(b, r), nil
	case GetMetadataRequest:
		reply = v.metadata(r)
	case GetNewStreamsRequest:
		reply = v.newStreams(r)
	case CreateSessionRequest:
		reply = v.createSession()
	case DetachSessionRequest:
		reply = v.detach(r)
	}
	return reply.AppendTo(b, v.minor), nil
}

func (v *relayViewer) connect(r ConnectRequest) (ConnectReply, error) {
	if r.Version.Major != Major {
		return ConnectReply{}, &ProtocolError{
			Offset:   headerSize + 8,
			Expected: fmt.Sprintf("major version %d", Major),
			Got:      fmt.Sprint(r.Version.Major),
		}
	}
	if r.Type != ConnectionCommand {
		return ConnectReply{}, &ProtocolError{
			Offset:   headerSize + 16,
			Expected: fmt.Sprintf("a connection of type %d", ConnectionCommand),
			Got:      fmt.Sprint(uint32(r.Type)),
		}
	}
	v.connected = true
	v.minor = min(r.Version.Minor, v.relay.options.Minor)
	return ConnectReply{ViewerSession: v.relay.newViewer(), Version: Version{Major: Major, Minor: v.relay.options.Minor}}, nil
}

func (v *relayViewer) createSession() CreateSessionReply {
	v.created = true
	return CreateSessionReply{Status: CreateSessionOK}
}

func (v *relayViewer) attach(r AttachSessionRequest) AttachSessionReply {
	switch {
	case !v.created:
		return AttachSessionReply{Status: AttachNoSession}
	case r.Seek != SeekBeginning && r.Seek != SeekLast:
		return AttachSessionReply{Status: AttachBadSeek}
	}
	session, now, status := v.relay.attach(r.Session, v.minor)
	if status != AttachOK {
		return AttachSessionReply{Status: status}
	}
	read := &reading{session: session}
	v.readings = append(v.readings, read)
	return AttachSessionReply{Status: AttachOK, Streams: read.newStreams(now, r.Seek)}
}

func (v *relayViewer) newStreams(r GetNewStreamsRequest) NewStreamsReply {
	i := v.attached(r.Session)
	if i < 0 {
		return NewStreamsReply{Status: NewStreamsError}
	}
	read := v.readings[i]
	now := v.relay.time(read.session)
	if read.over(now) {
		return NewStreamsReply{Status: NewStreamsHangUp}
	}
	return NewStreamsReply{Status: NewStreamsOK, Streams: read.newStreams(now, SeekBeginning)}
}

func (v *relayViewer) nextIndex(r GetNextIndexRequest) Index {
	read, s := v.stream(r.Stream)
	switch {
	case s == nil:
		return Index{Status: IndexError}
	case s.recorded.Metadata:
		return Index{Status: IndexHangUp}
	}
	now := v.relay.time(read.session)
	index := s.index(now, read.closed(s, now))
	index.Flags = read.flags(now, s.recorded.TraceID)
	if index.Status != IndexOK {
		// Relay daemons of 2.13 announce new streams only with packets.
		index.Flags &^= FlagNewStreams
	}
	return index
}

// packet returns bytes of the packet whose index was sent last.
func (v *relayViewer) packet(b []byte, r GetPacketRequest) []byte {
	_, s := v.stream(r.Stream)
	start := len(b)
	if s != nil && s.holds(r.Offset, uint64(r.Length)) {
		b = PacketReply{Status: PacketOK}.AppendTo(b, v.minor)
		binary.BigEndian.PutUint32(b[start+4:], r.Length)
		data := len(b)
		b = append(b, make([]byte, r.Length)...)
		if n, _ := s.recorded.Packets.ReadAt(b[data:], int64(r.Offset)); n == int(r.Length) {
			return b
		}
	}
	return PacketReply{Status: PacketError}.AppendTo(b[:start], v.minor)
}

// holds reports whether the last packet contains these bytes.
func (s *streamReading) holds(offset, length uint64) bool {
	p := s.packet
	return s.recorded.Packets != nil && offset >= p.Offset &&
		offset-p.Offset <= p.PacketLength() && length <= p.PacketLength()-(offset-p.Offset)
}

func (v *relayViewer) metadata(r GetMetadataRequest) MetadataReply {
	read, s := v.stream(r.Stream)
	if s == nil || !s.recorded.Metadata {
		return MetadataReply{Status: MetadataError}
	}
	now := v.relay.time(read.session)
	return s.metadata(now, read.closed(s, now))
}

func (v *relayViewer) detach(r DetachSessionRequest) DetachSessionReply {
	i := v.attached(r.Session)
	switch {
	case i >= 0:
		v.relay.detach(v.readings[i].session)
		v.readings = slices.Delete(v.readings, i, i+1)
		return DetachSessionReply{Status: DetachOK}
	case v.created && !v.relay.has(r.Session):
		return DetachSessionReply{Status: DetachUnknown}
	default:
		return DetachSessionReply{Status: DetachError}
	}
}

// close detaches the viewer's sessions.
func (v *relayViewer) close() {
	for _, read := range v.readings {
		v.relay.detach(read.session)
	}
	v.readings = nil
}

// attached returns the index of an attached session, or -1.
func (v *relayViewer) attached(session uint64) int {
	return slices.IndexFunc(v.readings, func(r *reading) bool { return r.session.recording.Session.ID == session })
}

// stream returns a stream that was sent to the viewer and is not gone, or nil.
func (v *relayViewer) stream(id uint64) (*reading, *streamReading) {
	for _, read := range v.readings {
		for _, s := range read.streams {
			if s.recorded.ID == id && !s.gone {
				return read, s
			}
		}
	}
	return nil, nil
}
