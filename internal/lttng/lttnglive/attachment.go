// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"fmt"
	"math"
)

// Attachment is a session that a viewer has attached. It uses the viewer's connection.
type Attachment struct {
	viewer   *Viewer
	session  uint64
	detached bool
}

// Session returns the ID of the session.
func (a *Attachment) Session() uint64 { return a.session }

// NextIndex requests the next index of a stream of packets. After IndexRetry and IndexInactive, call it again some
// milliseconds later. After IndexHangUp and IndexEnd the stream no longer exists. IndexError is a *StatusError.
func (a *Attachment) NextIndex(ctx context.Context, stream uint64) (Index, error) {
	var reply Index
	err := a.command(ctx, GetNextIndexRequest{Stream: stream}, func(from replySource) (err error) {
		if reply, err = readIndex(from, a.viewer.options.Limits); err == nil && reply.Status == IndexError {
			err = &StatusError{Status: reply.Status}
		}
		return err
	})
	return reply, err
}

// Packet requests length bytes from offset of the packet of the stream's last index: Index.Offset, and
// Index.ContentLength, or Index.PacketLength to include the padding. The data is stored in dst from its beginning if
// it has the capacity, otherwise in a larger buffer, which grows while bytes arrive.
//
// Relay daemons up to 2.6 refuse a packet until new metadata or streams are read. Then the status is PacketError with
// the corresponding flags. PacketError without flags is a *StatusError.
func (a *Attachment) Packet(ctx context.Context, stream, offset, length uint64, dst []byte) (PacketReply, error) {
	limit := min(uint64(a.viewer.options.Limits.Packet), math.MaxUint32)
	if length > limit {
		return PacketReply{}, a.fail(CommandGetPacket, fmt.Errorf("expected a request for at most %d bytes of a packet, got %d", limit, length))
	}
	request := GetPacketRequest{Stream: stream, Offset: offset, Length: uint32(length)}
	var reply PacketReply
	err := a.command(ctx, request, func(from replySource) (err error) {
		if reply, err = readPacketReply(from, request.Length, dst); err == nil && reply.Status == PacketError && reply.Flags == 0 {
			err = &StatusError{Status: reply.Status}
		}
		return err
	})
	return reply, err
}

// Metadata requests the metadata of a stream that was not sent yet. The data is stored in dst, as by Packet.
// MetadataError is a *StatusError.
func (a *Attachment) Metadata(ctx context.Context, stream uint64, dst []byte) (MetadataReply, error) {
	var reply MetadataReply
	err := a.command(ctx, GetMetadataRequest{Stream: stream}, func(from replySource) (err error) {
		if reply, err = readMetadataReply(from, a.viewer.options.Limits, dst); err == nil && reply.Status == MetadataError {
			err = &StatusError{Status: reply.Status}
		}
		return err
	})
	return reply, err
}

// NewStreams requests the streams that were not sent yet. NewStreamsError (the session no longer exists) is a
// *StatusError. NewStreamsHangUp (the session was closed) is not.
func (a *Attachment) NewStreams(ctx context.Context) (NewStreamsReply, error) {
	var reply NewStreamsReply
	err := a.command(ctx, GetNewStreamsRequest{Session: a.session}, func(from replySource) (err error) {
		if reply, err = readNewStreams(from, a.viewer.options.Limits); err == nil && reply.Status == NewStreamsError {
			err = &StatusError{Status: reply.Status}
		}
		return err
	})
	return reply, err
}

// Detach detaches the session, so that another viewer can attach it. Afterwards every method returns ErrDetached.
// Relay daemons before 2.8 do not know the command: Detach sends nothing to them, and they detach the session at the
// end of the connection.
func (a *Attachment) Detach(ctx context.Context) error {
	if a.detached || a.viewer.minor < minorDetach {
		a.detached = true
		return nil
	}
	err := a.command(ctx, DetachSessionRequest{Session: a.session}, func(from replySource) error {
		reply, err := readDetachReply(from)
		if err == nil && reply.Status != DetachOK {
			err = &StatusError{Status: reply.Status}
		}
		return err
	})
	a.detached = true
	return err
}

func (a *Attachment) command(ctx context.Context, r Request, read func(from replySource) error) error {
	if a.detached {
		return a.fail(r.Command(), ErrDetached)
	}
	return a.viewer.command(ctx, r, read)
}

func (a *Attachment) fail(c Command, err error) error {
	return &CommandError{Peer: a.viewer.peer, Command: c, Err: err}
}
