// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"fmt"
)

// Request is a request of a viewer. The types of this file implement it as values.
type Request interface {
	Command() Command
	// appendPayload appends the payload of Command().payload() bytes.
	appendPayload(b []byte) []byte
}

// headerSize is the size in bytes of each request's header: the payload's size (64 bits), the command, and the
// command's version (always 0).
const headerSize = 16

// ConnectRequest opens a connection. It must be the first request.
type ConnectRequest struct {
	ViewerSession uint64 // ignored: the relay daemon assigns one
	Version       Version
	Type          ConnectionType
}

// ConnectionType is the purpose of a connection.
type ConnectionType uint32

// The types of connection. Relay daemons only serve commands.
const (
	ConnectionCommand      ConnectionType = 1
	ConnectionNotification ConnectionType = 2
)

// ListSessionsRequest requests all live sessions.
type ListSessionsRequest struct{}

// AttachSessionRequest attaches a session and requests its streams.
type AttachSessionRequest struct {
	Session uint64
	Offset  uint64 // unused
	Seek    Seek
}

// GetNextIndexRequest requests the next index of a stream.
type GetNextIndexRequest struct {
	Stream uint64
}

// GetPacketRequest requests bytes of a packet.
type GetPacketRequest struct {
	Stream uint64
	Offset uint64 // bytes, of Index.Offset
	Length uint32 // bytes
}

// GetMetadataRequest requests the metadata that was not sent yet.
type GetMetadataRequest struct {
	Stream uint64 // of metadata
}

// GetNewStreamsRequest requests the streams of an attached session that were not sent yet.
type GetNewStreamsRequest struct {
	Session uint64
}

// CreateSessionRequest creates the viewer's session, to which it attaches tracing sessions.
type CreateSessionRequest struct{}

// DetachSessionRequest detaches a session.
type DetachSessionRequest struct {
	Session uint64
}

func (ConnectRequest) Command() Command       { return CommandConnect }
func (ListSessionsRequest) Command() Command  { return CommandListSessions }
func (AttachSessionRequest) Command() Command { return CommandAttachSession }
func (GetNextIndexRequest) Command() Command  { return CommandGetNextIndex }
func (GetPacketRequest) Command() Command     { return CommandGetPacket }
func (GetMetadataRequest) Command() Command   { return CommandGetMetadata }
func (GetNewStreamsRequest) Command() Command { return CommandGetNewStreams }
func (CreateSessionRequest) Command() Command { return CommandCreateSession }
func (DetachSessionRequest) Command() Command { return CommandDetachSession }

func (r ConnectRequest) appendPayload(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, r.ViewerSession)
	b = binary.BigEndian.AppendUint32(b, r.Version.Major)
	b = binary.BigEndian.AppendUint32(b, r.Version.Minor)
	return binary.BigEndian.AppendUint32(b, uint32(r.Type))
}

func (ListSessionsRequest) appendPayload(b []byte) []byte { return b }

func (r AttachSessionRequest) appendPayload(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, r.Session)
	b = binary.BigEndian.AppendUint64(b, r.Offset)
	return binary.BigEndian.AppendUint32(b, uint32(r.Seek))
}

func (r GetNextIndexRequest) appendPayload(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b, r.Stream)
}

func (r GetPacketRequest) appendPayload(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, r.Stream)
	b = binary.BigEndian.AppendUint64(b, r.Offset)
	return binary.BigEndian.AppendUint32(b, r.Length)
}

func (r GetMetadataRequest) appendPayload(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b, r.Stream)
}

func (r GetNewStreamsRequest) appendPayload(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b, r.Session)
}

func (CreateSessionRequest) appendPayload(b []byte) []byte { return b }

func (r DetachSessionRequest) appendPayload(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b, r.Session)
}

// AppendRequest appends the bytes of a request, including its header.
func AppendRequest(b []byte, r Request) []byte {
	c := r.Command()
	b = binary.BigEndian.AppendUint64(b, uint64(c.payload()))
	b = binary.BigEndian.AppendUint32(b, uint32(c))
	b = binary.BigEndian.AppendUint32(b, 0)
	return r.appendPayload(b)
}

// DecodeRequest decodes the request at the front of b. n is its size. If n is 0 without an error, b ends inside the
// request. An unknown command is an *UnknownCommandError.
//
// The payload's size and the command's version in the header are ignored, as relay daemons do, because viewers send
// various values.
func DecodeRequest(b []byte) (r Request, n int, err error) {
	if len(b) < headerSize {
		return nil, 0, nil
	}
	if n, err = requestSize(b); err != nil {
		return nil, 0, err
	}
	if len(b) < n {
		return nil, 0, nil
	}
	return decodePayload(Command(binary.BigEndian.Uint32(b[8:])), b[headerSize:n]), n, nil
}

// requestSize returns the size in bytes of the request whose header is at the front of b.
func requestSize(b []byte) (int, error) {
	c := Command(binary.BigEndian.Uint32(b[8:]))
	if !c.Known() {
		return 0, &UnknownCommandError{Command: c}
	}
	return headerSize + c.payload(), nil
}

// decodePayload decodes the complete payload of a known command.
func decodePayload(c Command, p []byte) Request {
	switch c {
	case CommandConnect:
		return ConnectRequest{
			ViewerSession: binary.BigEndian.Uint64(p),
			Version:       Version{Major: binary.BigEndian.Uint32(p[8:]), Minor: binary.BigEndian.Uint32(p[12:])},
			Type:          ConnectionType(binary.BigEndian.Uint32(p[16:])),
		}
	case CommandListSessions:
		return ListSessionsRequest{}
	case CommandAttachSession:
		return AttachSessionRequest{
			Session: binary.BigEndian.Uint64(p),
			Offset:  binary.BigEndian.Uint64(p[8:]),
			Seek:    Seek(binary.BigEndian.Uint32(p[16:])),
		}
	case CommandGetNextIndex:
		return GetNextIndexRequest{Stream: binary.BigEndian.Uint64(p)}
	case CommandGetPacket:
		return GetPacketRequest{
			Stream: binary.BigEndian.Uint64(p),
			Offset: binary.BigEndian.Uint64(p[8:]),
			Length: binary.BigEndian.Uint32(p[16:]),
		}
	case CommandGetMetadata:
		return GetMetadataRequest{Stream: binary.BigEndian.Uint64(p)}
	case CommandGetNewStreams:
		return GetNewStreamsRequest{Session: binary.BigEndian.Uint64(p)}
	case CommandCreateSession:
		return CreateSessionRequest{}
	default:
		return DetachSessionRequest{Session: binary.BigEndian.Uint64(p)}
	}
}

// UnknownCommandError means that the protocol does not have the command of a request. A relay daemon replies 11, in
// 32 bits, and closes the connection.
type UnknownCommandError struct {
	Command Command
}

func (e *UnknownCommandError) Error() string {
	return fmt.Sprintf("byte 8: expected a command from %d to %d, got %d", CommandConnect, CommandDetachSession, uint32(e.Command))
}
