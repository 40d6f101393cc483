// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "fmt"

// statusName returns the name of status v in a table whose index is the status.
func statusName(names []string, v uint32) string {
	if v == 0 || uint64(v) >= uint64(len(names)) {
		return fmt.Sprintf("status %d", v)
	}
	return names[v]
}

// AttachStatus is the status of "attach session".
type AttachStatus uint32

// The statuses of "attach session".
const (
	AttachOK        AttachStatus = 1
	AttachAlready   AttachStatus = 2 // another viewer is attached to the session
	AttachUnknown   AttachStatus = 3 // there is no such session, or it has been closed
	AttachNotLive   AttachStatus = 4 // the session was not created with a live timer
	AttachBadSeek   AttachStatus = 5
	AttachNoSession AttachStatus = 6 // the viewer sent no "create session" before
)

var attachStatuses = []string{1: "OK", "another viewer is attached", "session unknown", "session is not live", "bad seek", "no viewer session"}

func (s AttachStatus) String() string { return statusName(attachStatuses, uint32(s)) }

// IndexStatus is the status of "get next index".
type IndexStatus uint32

// The statuses of "get next index".
const (
	IndexOK IndexStatus = 1
	// IndexRetry: there is nothing new. Request the index again later.
	IndexRetry IndexStatus = 2
	// IndexHangUp: the stream has ended and all of it was read.
	IndexHangUp IndexStatus = 3
	// IndexError is also the reply for a stream that the relay daemon does not know, or no longer knows.
	IndexError IndexStatus = 4
	// IndexInactive promises that no further event of the stream is older than the index's TimestampEnd.
	IndexInactive IndexStatus = 5
	// IndexEnd: the index file has ended. No known relay daemon sends it.
	IndexEnd IndexStatus = 6
)

var indexStatuses = []string{1: "OK", "retry", "hang-up", "error", "inactive", "end"}

func (s IndexStatus) String() string { return statusName(indexStatuses, uint32(s)) }

// PacketStatus is the status of "get packet".
type PacketStatus uint32

// The statuses of "get packet".
const (
	PacketOK    PacketStatus = 1
	PacketRetry PacketStatus = 2
	// PacketError with FlagNewMetadata or FlagNewStreams (relay daemons up to 2.6) means that the viewer must read
	// those first. Otherwise the packet is not available.
	PacketError PacketStatus = 3
	PacketEnd   PacketStatus = 4
)

var packetStatuses = []string{1: "OK", "retry", "error", "end"}

func (s PacketStatus) String() string { return statusName(packetStatuses, uint32(s)) }

// MetadataStatus is the status of "get metadata".
type MetadataStatus uint32

// The statuses of "get metadata".
const (
	MetadataOK   MetadataStatus = 1
	MetadataNone MetadataStatus = 2 // nothing new
	// MetadataError is also the reply for a stream that the relay daemon does not know, or no longer knows.
	MetadataError MetadataStatus = 3
)

var metadataStatuses = []string{1: "OK", "nothing new", "error"}

func (s MetadataStatus) String() string { return statusName(metadataStatuses, uint32(s)) }

// NewStreamsStatus is the status of "get new streams".
type NewStreamsStatus uint32

// The statuses of "get new streams".
const (
	NewStreamsOK NewStreamsStatus = 1 // the session is live, with or without new streams
	// NewStreamsNone: the relay daemon cannot send streams now.
	NewStreamsNone   NewStreamsStatus = 2
	NewStreamsError  NewStreamsStatus = 3 // the session no longer exists, or is not attached
	NewStreamsHangUp NewStreamsStatus = 4 // the session has been closed, and all streams were read
)

var newStreamsStatuses = []string{1: "OK", "nothing new", "error", "session closed"}

func (s NewStreamsStatus) String() string { return statusName(newStreamsStatuses, uint32(s)) }

// CreateSessionStatus is the status of "create session".
type CreateSessionStatus uint32

// The statuses of "create session".
const (
	CreateSessionOK    CreateSessionStatus = 1
	CreateSessionError CreateSessionStatus = 2
)

var createSessionStatuses = []string{1: "OK", "error"}

func (s CreateSessionStatus) String() string { return statusName(createSessionStatuses, uint32(s)) }

// DetachStatus is the status of "detach session".
type DetachStatus uint32

// The statuses of "detach session".
const (
	DetachOK      DetachStatus = 1
	DetachUnknown DetachStatus = 2 // there is no such session
	DetachError   DetachStatus = 3 // the session is not attached
)

var detachStatuses = []string{1: "OK", "session unknown", "error"}

func (s DetachStatus) String() string { return statusName(detachStatuses, uint32(s)) }

// Seek is the place at which a viewer begins to read the streams that exist when it attaches. It reads later streams
// from their beginning.
type Seek uint32

// The places.
const (
	SeekBeginning Seek = 1 // everything that the relay daemon still has
	SeekLast      Seek = 2 // packets that arrive from now on
)

func (s Seek) String() string {
	return statusName([]string{1: "beginning", "last"}, uint32(s))
}
