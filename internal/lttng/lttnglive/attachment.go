// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"fmt"
	"math"
)

// Attachment is a session that a viewer reads. It shares the viewer's connection.
type Attachment struct {
	viewer   *Viewer
	session  uint64
	detached bool
}

// Session is the ID of the session.
func (a *Attachment) Session() uint64 { return a.session }

// NextIndex asks what comes next in a stream of packets. With IndexRetry and
// IndexInactive ask again some milliseconds later; after IndexHangUp and IndexEnd
// the stream is gone. IndexError is a *StatusError.
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

// Packet asks for length bytes of the packet whose index was the last of the stream,
// from offset on: Index.Offset and Index.ContentLength, or Index.PacketLength for the
// padding, too. The data stands in dst, from its beginning, as far as there is room in
// it, or else in a larger buffer, which grows as bytes come.
//
// Where the packet is refused until metadata or streams are read (relay daemons up to
// 2.6), the status is PacketError and the flags say which; PacketError without flags
// is a *StatusError.
func (a *Attachment) Packet(ctx context.Context, stream, offset, length uint64, dst []byte) (PacketReply, error) {
	limit := min(uint64(a.viewer.options.Limits.Packet), math.MaxUint32)
	if length > limit {
		return PacketReply{}, a.fail(CommandGetPacket, fmt.Errorf("expected at most %d bytes of a packet to ask for, got %d", limit, length))
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

// Metadata asks for the metadata of a stream that was not sent yet. The data stands in
// dst, as that of Packet. MetadataError is a *StatusError.
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

// NewStreams asks for the streams that were not told yet. NewStreamsError (the session
// is gone) is a *StatusError; NewStreamsHangUp (it was closed) is not.
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

// Detach gives the session up, so that another viewer can attach it. Afterwards every
// method says ErrDetached. Relay daemons before 2.8 don't know the command: there it
// is the end of the connection that detaches, and nothing is sent.
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
