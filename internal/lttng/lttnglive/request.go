// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"fmt"
)

// Request is any request of a viewer. The types of this file implement it as
// values.
type Request interface {
	Command() Command
	// appendPayload appends what follows the header: Command().payload() bytes.
	appendPayload(b []byte) []byte
}

// headerSize is the size in bytes of what stands before each request's payload:
// the payload's size (64 bits), the command, and the command's version (always 0).
const headerSize = 16

// ConnectRequest opens a connection. It must come first.
type ConnectRequest struct {
	ViewerSession uint64 // of no meaning: the relay daemon gives one
	Version       Version
	Type          ConnectionType
}

// ConnectionType is what a viewer wants a connection for.
type ConnectionType uint32

// The types of connection. Relay daemons serve commands only.
const (
	ConnectionCommand      ConnectionType = 1
	ConnectionNotification ConnectionType = 2
)

// ListSessionsRequest asks for all live sessions.
type ListSessionsRequest struct{}

// AttachSessionRequest asks for the streams of a session, to read them.
type AttachSessionRequest struct {
	Session uint64
	Offset  uint64 // unused
	Seek    Seek
}

// GetNextIndexRequest asks what comes next in a stream.
type GetNextIndexRequest struct {
	Stream uint64
}

// GetPacketRequest asks for bytes of a packet.
type GetPacketRequest struct {
	Stream uint64
	Offset uint64 // bytes, of Index.Offset
	Length uint32 // bytes
}

// GetMetadataRequest asks for the metadata that was not sent yet.
type GetMetadataRequest struct {
	Stream uint64 // of metadata
}

// GetNewStreamsRequest asks for the streams of an attached session that were not
// told yet.
type GetNewStreamsRequest struct {
	Session uint64
}

// CreateSessionRequest makes the viewer's session, which sessions are attached to.
type CreateSessionRequest struct{}

// DetachSessionRequest gives up an attached session.
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

// AppendRequest appends the request with its header, as it is sent.
func AppendRequest(b []byte, r Request) []byte {
	c := r.Command()
	b = binary.BigEndian.AppendUint64(b, uint64(c.payload()))
	b = binary.BigEndian.AppendUint32(b, uint32(c))
	b = binary.BigEndian.AppendUint32(b, 0)
	return r.appendPayload(b)
}

// DecodeRequest decodes the request at the front of b. n is its size; n == 0
// without an error means that b ends inside it. A command that the protocol doesn't
// have is an *UnknownCommandError.
//
// What a header says of the payload's size and of the command's version is not
// looked at: relay daemons don't either, and viewers send what they like.
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

// requestSize is the size in bytes of the request whose header is at the front of b.
func requestSize(b []byte) (int, error) {
	c := Command(binary.BigEndian.Uint32(b[8:]))
	if !c.Known() {
		return 0, &UnknownCommandError{Command: c}
	}
	return headerSize + c.payload(), nil
}

// decodePayload decodes the payload of a known command, which is complete.
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

// UnknownCommandError says that a request has a command that the protocol doesn't
// have. A relay daemon answers 11, in 32 bits, and closes.
type UnknownCommandError struct {
	Command Command
}

func (e *UnknownCommandError) Error() string {
	return fmt.Sprintf("byte 8: expected a command from %d to %d, got %d", CommandConnect, CommandDetachSession, uint32(e.Command))
}
