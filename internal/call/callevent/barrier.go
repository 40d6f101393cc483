// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

// Cause is the reason why knowledge of stacks ends: at a barrier or, for causes that only pairing
// detects, at a frame. Its text is part of attributes and metrics.
type Cause uint8

const (
	// CauseSuspended: tracing was suspended, by the receiver, an operator or the tracer's user.
	CauseSuspended Cause = 1 + iota
	// CauseDiscarded: the tracer reported that it lost events.
	CauseDiscarded
	// CauseDropped: the receiver dropped events.
	CauseDropped
	// CauseBadData: the receiver could not read the data.
	CauseBadData
	// CauseEnded: the call stream ended in order.
	CauseEnded
	// CauseDisconnected: the connection to the agent was lost.
	CauseDisconnected
	// CauseUnresponsive: the agent, or one of its streams, was silent for too long.
	CauseUnresponsive
	// CauseShutdown: the collector, or the component, is shutting down.
	CauseShutdown
	// CauseLimit: a configured bound was reached.
	CauseLimit

	// Only pairing detects the following causes. No batch contains them.

	// CauseGap: events are missing.
	CauseGap
	// CauseJoined: the call stream was first seen at a number above 0.
	CauseJoined
	// CauseClock: the source's clock jumped.
	CauseClock
	// CauseMismatch: a function deeper in the stack returned.
	CauseMismatch
	// CauseIdle: no batch arrived for too long.
	CauseIdle
	// CauseThreadReused: another thread has the lane's ID now.
	CauseThreadReused
	// CauseLongjmp: a function deeper in the stack called another one, so control has returned to it
	// without an exit.
	CauseLongjmp

	// CauseCount is one more than the highest cause, for tables by cause.
	CauseCount

	lastBatchCause = CauseLimit
)

var causeNames = [CauseCount]string{
	"none", "suspended", "discarded", "dropped", "bad_data", "ended", "disconnected", "unresponsive",
	"shutdown", "limit", "gap", "joined", "clock", "mismatch", "idle", "thread_reused", "longjmp",
}

func (c Cause) String() string {
	if c < CauseCount {
		return causeNames[c]
	}
	return "unknown"
}

// BarrierKind distinguishes breaks from the end.
type BarrierKind uint8

const (
	// BarrierBreak: stacks are not known across it.
	BarrierBreak BarrierKind = 1 + iota
	// BarrierEnd: no event of the call stream follows.
	BarrierEnd

	barrierKindEnd
)

// Barrier ends the knowledge of stacks before a sequence number. It has no sequence number of its
// own, so a repeated barrier changes nothing.
type Barrier struct {
	// From and To are sequence numbers. Frames that are open before From end there. Events numbered
	// From to To-1 must not be paired. Stacks are empty at To. In a point break and in an end From
	// and To are equal.
	From, To uint64
	Kind     BarrierKind
	Cause    Cause
}

// Point is a break before the sequence number at, between two events. It is for a break that has no
// sequence numbers itself.
func Point(at uint64, cause Cause) Barrier {
	return Barrier{From: at, To: at, Kind: BarrierBreak, Cause: cause}
}

// Interval is a break over the sequence numbers from to to-1: those of lost events, or of received
// events among which others are missing.
func Interval(from, to uint64, cause Cause) Barrier {
	return Barrier{From: from, To: to, Kind: BarrierBreak, Cause: cause}
}

// End is the end of a call stream whose next sequence number would be at.
func End(at uint64, cause Cause) Barrier {
	return Barrier{From: at, To: at, Kind: BarrierEnd, Cause: cause}
}

// check returns an error if a batch must not contain b. offset is the position of b in the batch.
func (b Barrier) check(offset int) error {
	switch {
	case b.Kind == 0 || b.Kind >= barrierKindEnd:
		return layoutError(offset+16, "a kind of barrier", "%d", b.Kind)
	case b.Cause == 0 || b.Cause > lastBatchCause:
		return layoutError(offset+17, "a cause of a barrier", "%d", b.Cause)
	case b.To > MaxSequence || b.From > b.To || b.Kind == BarrierEnd && b.From != b.To:
		return layoutError(offset, "a barrier from a number to one not below it", "%d to %d", b.From, b.To)
	}
	return nil
}
