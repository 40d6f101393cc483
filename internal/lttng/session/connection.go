// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Subject is what a Session reads: a session of a relay daemon, or the files of a recorded trace.
type Subject struct {
	lttnglive.Session
	// Kind and Name identify it in log lines and in the status of the component.
	Kind, Name string
	// Key is the key of its only trace. Empty: the UUID in the metadata.
	Key string
	// Position is the key of the trace's position; empty: that of the trace. Recording identifies the recording, if
	// another one can have the same key. The position of another recording is not used.
	Position, Recording string
	Words               *Words
	// Attach opens a connection and returns its streams. room is called with the size of data before it is read; its
	// error refuses the data. hasRead is set if packets were read before.
	Attach func(ctx context.Context, room func(bytes int) error, hasRead bool) (Connection, []lttnglive.Stream, error)
	// Once is set if no error is temporary: the first one ends the session.
	Once bool
	// Damaged is called with a packet that cannot be read: the key of its stream, and its offset. The reader skips the
	// packet, and the packets of a stream have increasing offsets that never change. nil: such a packet ends the
	// connection.
	Damaged func(stream string, offset uint64, err error)
}

// Words are the log lines about a subject.
type Words struct {
	Attached, Again, Closed, Gone, Unreadable, Refused, Disconnected, Detached string
}

// Connection has the data of a session: its metadata, and the packets of its streams. The methods up to Detach are
// those of lttnglive.Attachment. One goroutine uses a connection.
type Connection interface {
	// NextIndex returns the index of the next packet of a stream. A *LossError reports lost packets before it.
	NextIndex(ctx context.Context, stream uint64) (lttnglive.Index, error)
	Packet(ctx context.Context, stream, offset, length uint64, dst []byte) (lttnglive.PacketReply, error)
	Metadata(ctx context.Context, stream uint64, dst []byte) (lttnglive.MetadataReply, error)
	NewStreams(ctx context.Context) (lttnglive.NewStreamsReply, error)
	Detach(ctx context.Context) error
	Close() error
	// Fields are added to the log line of a new connection.
	Fields() []zap.Field
	// Identified passes the parsed metadata of a trace. The session appends to it.
	Identified(*ctf.Trace)
	// Resume announces the position of a stream: earlier packets are not necessary. It returns false if the position
	// belongs to another recording. Then the stream is read from its beginning.
	Resume(stream uint64, at merge.Position) bool
}

// LossError reports that packets of a stream are not read. The stream continues after them.
type LossError struct {
	Err error
	// Older is the number of packets that are older than all that were read. 0: the packets are the next ones, and the
	// stream has a gap.
	Older int64
}

func (e *LossError) Error() string { return e.Err.Error() }
func (e *LossError) Unwrap() error { return e.Err }
