// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "math"

// Cause is the cause of a loss.
type Cause uint8

// The causes.
const (
	// Discarded: the tracer's buffers were full. Count is the number of events.
	Discarded Cause = iota
	// LostPackets: the tracer wrote packets that did not arrive. Count is the number of packets.
	LostPackets
	// Overtaken: a stream sent nothing for so long that others stopped waiting for it. At LossEnd, Count is the
	// number of events that arrived late.
	Overtaken
	// Disordered: events of a stream are older than its promise, or older than events that were returned before the
	// stream was added. Count as with Overtaken.
	Disordered
	// Cleared: recorded packets were removed, as the caller reported.
	Cleared
	// Interrupted: after an interruption it is unknown whether packets are missing.
	Interrupted
	// Stopped: tracing was stopped and has resumed. The number of missing events is unknown.
	Stopped
	// NoRoom: the caller had no memory for the stream's packets, so others stopped waiting for it. Count as with
	// Overtaken.
	NoRoom
	// Damaged: a packet, or its rest, cannot be read.
	Damaged
)

var causeNames = [...]string{"discarded events", "lost packets", "overtaken", "disordered", "cleared", "interrupted", "stopped", "no room", "damaged"}

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "unknown cause"
}

// Loss is an interval in which data is missing. LossBegin and LossEnd have the same Loss.
type Loss struct {
	Stream *Stream
	Cause  Cause
	// Count is the amount of missing data: see the causes. 0 means unknown.
	Count uint64
	// From and To are in nanoseconds since the Unix epoch. The missing data is not older than From and not newer than
	// To. From is math.MinInt64 if it is unknown. At LossBegin, To is known only for Discarded, LostPackets and
	// Stopped. For other causes it is math.MaxInt64.
	From, To int64
}

// unknownEnd is the end of a loss whose end is not known yet.
const unknownEnd = math.MaxInt64
