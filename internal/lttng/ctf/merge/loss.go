// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

// Cause is why something is missing.
type Cause uint8

// The causes.
const (
	// Discarded: the tracer had no room for events. Count is how many.
	Discarded Cause = iota
	// LostPackets: packets were written that didn't come. Count is how many.
	LostPackets
	// Overtaken: a stream said nothing for so long that others didn't wait for it.
	// Count is how many events came late, at LossEnd.
	Overtaken
	// Disordered: events of a stream are older than its promise, or older than what
	// was given out when the stream became known. Count as with Overtaken.
	Disordered
	// Cleared: the caller says that recorded packets were removed.
	Cleared
	// Interrupted: there is no knowing whether the packets that came after an
	// interruption follow those before.
	Interrupted
	// Stopped: tracing was stopped, and goes on. Nobody counts what happened meanwhile.
	Stopped
	// NoRoom: the caller had no room for what the stream had to say, so others didn't
	// wait for it. Count as with Overtaken.
	NoRoom
)

var causeNames = [...]string{"discarded events", "lost packets", "overtaken", "disordered", "cleared", "interrupted", "stopped", "no room"}

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "unknown cause"
}

// Loss is an interval in which something is missing. LossBegin and LossEnd have the
// same one.
type Loss struct {
	Stream *Stream
	Cause  Cause
	// Count is how much is missing: see the causes. 0 if nobody knows.
	Count uint64
	// From and To are in nanoseconds since the Unix epoch. From may be
	// math.MinInt64: since ever. What was lost is not older than From, and not newer
	// than To. At LossBegin To is known for Discarded, LostPackets and Stopped only;
	// otherwise it is math.MaxInt64.
	From, To int64
}
