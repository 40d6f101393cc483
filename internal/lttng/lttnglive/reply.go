// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Reply is a reply of a relay daemon. Index and the types of this file implement it as values.
type Reply interface {
	// AppendTo appends the bytes of the reply. minor is the agreed version.
	AppendTo(b []byte, minor uint32) []byte
}

// ConnectReply accepts the viewer.
type ConnectReply struct {
	ViewerSession uint64
	Version       Version        // the relay daemon's version, not the agreed one
	Type          ConnectionType // relay daemons send 0
}

// ListSessionsReply contains the live sessions.
type ListSessionsReply struct {
	Sessions []Session
}

// AttachSessionReply contains the streams of the session.
type AttachSessionReply struct {
	Status  AttachStatus
	Streams []Stream // none unless AttachOK
}

// PacketReply contains the requested bytes.
type PacketReply struct {
	Status PacketStatus
	Flags  Flags
	Data   []byte // empty unless PacketOK
}

// MetadataReply contains metadata that was not sent before.
type MetadataReply struct {
	Status MetadataStatus
	Data   []byte // empty unless MetadataOK
}

// NewStreamsReply contains the streams that were not sent before.
type NewStreamsReply struct {
	Status  NewStreamsStatus
	Streams []Stream // none unless NewStreamsOK
}

// CreateSessionReply reports whether the viewer has a session.
type CreateSessionReply struct {
	Status CreateSessionStatus
}

// DetachSessionReply reports whether the session was detached.
type DetachSessionReply struct {
	Status DetachStatus
}

// Sizes in bytes of replies, or of the part before their lists or data.
const (
	connectReplySize = 20
	sessionCountSize = 4
	statusSize       = 4
	streamCountSize  = 8  // status, count
	packetReplyFixed = 12 // status, length, flags
	metadataFixed    = 12 // length (64 bits), status
)

// unknownCommandReply is a relay daemon's reply, of 32 bits, to an unknown command, before it closes the connection.
const unknownCommandReply = 11

func (r ConnectReply) AppendTo(b []byte, _ uint32) []byte {
	b = binary.BigEndian.AppendUint64(b, r.ViewerSession)
	b = binary.BigEndian.AppendUint32(b, r.Version.Major)
	b = binary.BigEndian.AppendUint32(b, r.Version.Minor)
	return binary.BigEndian.AppendUint32(b, uint32(r.Type))
}

func (r ListSessionsReply) AppendTo(b []byte, minor uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Sessions)))
	for _, s := range r.Sessions {
		b = appendSession(b, s, minor)
	}
	return b
}

func (r AttachSessionReply) AppendTo(b []byte, _ uint32) []byte {
	return appendStreams(b, uint32(r.Status), r.Streams)
}

func (r PacketReply) AppendTo(b []byte, _ uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.Status))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Data)))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Flags))
	return append(b, r.Data...)
}

func (r MetadataReply) AppendTo(b []byte, _ uint32) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Data)))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Status))
	return append(b, r.Data...)
}

func (r NewStreamsReply) AppendTo(b []byte, _ uint32) []byte {
	return appendStreams(b, uint32(r.Status), r.Streams)
}

func (r CreateSessionReply) AppendTo(b []byte, _ uint32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(r.Status))
}

func (r DetachSessionReply) AppendTo(b []byte, _ uint32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(r.Status))
}

func appendStreams(b []byte, status uint32, streams []Stream) []byte {
	b = binary.BigEndian.AppendUint32(b, status)
	b = binary.BigEndian.AppendUint32(b, uint32(len(streams)))
	for _, s := range streams {
		b = appendStream(b, s)
	}
	return b
}

// DecodeReply decodes the reply to a request at the front of b. minor is the agreed version. n is the size of the
// reply. If n is 0 without an error, b ends inside the reply. Data of packets and metadata is part of b. Violations
// of the protocol or the limits are a *ProtocolError.
func DecodeReply(r Request, minor uint32, limits Limits, b []byte) (reply Reply, n int, err error) {
	from := &byteSource{b: b}
	reply, err = readReply(r, minor, limits.withDefaults(), from)
	switch {
	case errors.Is(err, errIncomplete):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	return reply, from.used, nil
}

func readReply(r Request, minor uint32, limits Limits, from replySource) (Reply, error) {
	switch r := r.(type) {
	case ConnectRequest:
		return readConnectReply(from)
	case ListSessionsRequest:
		return readSessions(from, minor, limits)
	case AttachSessionRequest:
		return readAttachReply(from, limits)
	case GetNextIndexRequest:
		return readIndex(from, limits)
	case GetPacketRequest:
		return readPacketReply(from, r.Length, nil)
	case GetMetadataRequest:
		return readMetadataReply(from, limits, nil)
	case GetNewStreamsRequest:
		return readNewStreams(from, limits)
	case CreateSessionRequest:
		return readCreateReply(from)
	default:
		return readDetachReply(from)
	}
}

func readConnectReply(from replySource) (ConnectReply, error) {
	start := from.offset()
	b, err := from.next(connectReplySize)
	if err != nil {
		return ConnectReply{}, err
	}
	r := ConnectReply{
		ViewerSession: binary.BigEndian.Uint64(b),
		Version:       Version{Major: binary.BigEndian.Uint32(b[8:]), Minor: binary.BigEndian.Uint32(b[12:])},
		Type:          ConnectionType(binary.BigEndian.Uint32(b[16:])),
	}
	if r.Version.Major != Major || r.Version.Minor < MinMinor {
		return ConnectReply{}, &ProtocolError{
			Offset:   start + 8,
			Expected: fmt.Sprintf("version %d.%d or a later %d", Major, MinMinor, Major),
			Got:      r.Version.String(),
		}
	}
	return r, nil
}

// readSessions allocates memory for the received sessions, not for their announced number.
func readSessions(from replySource, minor uint32, limits Limits) (ListSessionsReply, error) {
	start := from.offset()
	b, err := from.next(sessionCountSize)
	if err != nil {
		return ListSessionsReply{}, err
	}
	n := binary.BigEndian.Uint32(b)
	if err := checkBound(n, limits.Sessions, start, "sessions"); err != nil {
		return ListSessionsReply{}, err
	}
	var r ListSessionsReply
	for range n {
		s, err := readSession(from, minor)
		if err != nil {
			return ListSessionsReply{}, err
		}
		r.Sessions = append(r.Sessions, s)
	}
	return r, nil
}

func readAttachReply(from replySource, limits Limits) (AttachSessionReply, error) {
	status, streams, err := readStatusAndStreams(from, limits, attachStatuses, CommandAttachSession)
	if err != nil {
		return AttachSessionReply{}, err
	}
	return AttachSessionReply{Status: AttachStatus(status), Streams: streams}, nil
}

func readNewStreams(from replySource, limits Limits) (NewStreamsReply, error) {
	status, streams, err := readStatusAndStreams(from, limits, newStreamsStatuses, CommandGetNewStreams)
	if err != nil {
		return NewStreamsReply{}, err
	}
	return NewStreamsReply{Status: NewStreamsStatus(status), Streams: streams}, nil
}

// readStatusAndStreams reads a reply with a status and streams. Only a reply with status 1, OK, may have streams.
func readStatusAndStreams(from replySource, limits Limits, statuses []string, c Command) (uint32, []Stream, error) {
	start := from.offset()
	b, err := from.next(streamCountSize)
	if err != nil {
		return 0, nil, err
	}
	status, n := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if err := checkStatus(status, statuses, start, c); err != nil {
		return 0, nil, err
	}
	limit := limits.Streams
	if status != 1 {
		limit = 0
	}
	if err := checkBound(n, limit, start+4, "streams with status "+statusName(statuses, status)); err != nil {
		return 0, nil, err
	}
	streams, err := readStreams(from, n)
	return status, streams, err
}

// readPacketReply reads the reply to a request for length bytes: all of them, or none.
func readPacketReply(from replySource, length uint32, dst []byte) (PacketReply, error) {
	start := from.offset()
	b, err := from.next(packetReplyFixed)
	if err != nil {
		return PacketReply{}, err
	}
	r := PacketReply{Status: PacketStatus(binary.BigEndian.Uint32(b)), Flags: Flags(binary.BigEndian.Uint32(b[8:]))}
	got := binary.BigEndian.Uint32(b[4:])
	if err := checkStatus(uint32(r.Status), packetStatuses, start, CommandGetPacket); err != nil {
		return PacketReply{}, err
	}
	if r.Status != PacketOK {
		length = 0
	}
	if got != length {
		return PacketReply{}, &ProtocolError{
			Offset:   start + 4,
			Expected: fmt.Sprintf("%d bytes of a packet with status %s", length, r.Status),
			Got:      fmt.Sprint(got),
		}
	}
	if r.Data, err = from.data(dst, int(got)); err != nil {
		return PacketReply{}, err
	}
	return r, nil
}

func readMetadataReply(from replySource, limits Limits, dst []byte) (MetadataReply, error) {
	start := from.offset()
	b, err := from.next(metadataFixed)
	if err != nil {
		return MetadataReply{}, err
	}
	r := MetadataReply{Status: MetadataStatus(binary.BigEndian.Uint32(b[8:]))}
	n := binary.BigEndian.Uint64(b)
	if err := checkStatus(uint32(r.Status), metadataStatuses, start+8, CommandGetMetadata); err != nil {
		return MetadataReply{}, err
	}
	limit := limits.Metadata
	if r.Status != MetadataOK {
		limit = 0
	}
	if err := checkBound(n, limit, start, "bytes of metadata with status "+r.Status.String()); err != nil {
		return MetadataReply{}, err
	}
	if r.Data, err = from.data(dst, int(n)); err != nil {
		return MetadataReply{}, err
	}
	return r, nil
}

func readCreateReply(from replySource) (CreateSessionReply, error) {
	status, err := readStatus(from, createSessionStatuses, CommandCreateSession)
	return CreateSessionReply{Status: CreateSessionStatus(status)}, err
}

func readDetachReply(from replySource) (DetachSessionReply, error) {
	status, err := readStatus(from, detachStatuses, CommandDetachSession)
	return DetachSessionReply{Status: DetachStatus(status)}, err
}

func readStatus(from replySource, statuses []string, c Command) (uint32, error) {
	start := from.offset()
	b, err := from.next(statusSize)
	if err != nil {
		return 0, err
	}
	status := binary.BigEndian.Uint32(b)
	return status, checkStatus(status, statuses, start, c)
}

// checkStatus checks that the command has the status, which is at offset.
func checkStatus(status uint32, statuses []string, offset int, c Command) error {
	if status != 0 && uint64(status) < uint64(len(statuses)) {
		return nil
	}
	got := fmt.Sprint(status)
	if status == unknownCommandReply {
		got += " (the relay daemon does not know the command)"
	}
	return &ProtocolError{
		Offset:   offset,
		Expected: fmt.Sprintf("a status of %s from 1 to %d", c, len(statuses)-1),
		Got:      got,
	}
}
