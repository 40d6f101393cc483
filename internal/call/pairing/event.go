// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "github.com/callbraid/callbraid/internal/call/callevent"

// event is a call event with the stream's numbers for its names. Its place in the window
// gives its sequence number. It has 32 bytes and no pointers, because a window holds a
// million events.
type event struct {
	time int64
	// exception is the caller's function in an event of KindEnterFrom.
	function, laneName, exception, line uint32
	// receivedLow and receivedHigh are the receive time of the event's batch, in Unix
	// nanoseconds without the low receivedShift bits. Each event has its own, because the
	// result must not depend on the batch that arrived last.
	receivedLow       uint32
	receivedHigh      uint8
	kind              callevent.Kind
	ahead, attributes bool
}

// receivedShift reduces receive times, which are below 2^62, to 40 bits. A precision of
// 4 ms is enough to set a clock.
const receivedShift = 22

func (e *event) setReceived(t int64) {
	e.receivedLow, e.receivedHigh = uint32(t>>receivedShift), uint8(t>>(receivedShift+32))
}

func (e *event) received() int64 {
	return (int64(e.receivedHigh)<<32 | int64(e.receivedLow)) << receivedShift
}

// set translates an event of the current batch. The batch arrived at the time received.
func (e *event) set(from *callevent.Event, received, maxClockJump int64, n *names) {
	// No clock shows a time before 1970.
	t := max(from.Time, 0)
	e.time, e.line = t, from.Line
	e.function, e.laneName, e.exception = 0, 0, 0
	e.kind, e.ahead, e.attributes = from.Kind, t-received > maxClockJump, false
	e.setReceived(received)
	if from.Kind == callevent.KindSkip {
		return
	}
	e.laneName = n.batchLanes[from.Lane]
	if from.Kind != callevent.KindExitTop {
		e.function = n.batchFunctions[from.Function]
	}
	switch {
	case from.Kind < callevent.KindThrow, from.Kind == callevent.KindEnterOutermost:
	case from.Kind == callevent.KindEnterFrom:
		e.exception = n.batchFunctions[from.Exception]
	default:
		e.exception = n.batchExceptions[from.Exception]
	}
}
