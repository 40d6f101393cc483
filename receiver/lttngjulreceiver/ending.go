// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// cause is the reason for which a session ended, or a connection was refused.
type cause string

const (
	// causeClosed: the agent closed the connection, or its process ended.
	causeClosed cause = "closed"
	// causeSilent: the agent exceeded a timeout.
	causeSilent cause = "silent"
	// causeBadData: the agent sent wrong data.
	causeBadData cause = "bad_data"
	// causeMemory: the names of its loggers have no room.
	causeMemory cause = "memory"
	// causeShutdown: the receiver left it.
	causeShutdown cause = "shutdown"
	// causeMaxAgents: there are too many connections.
	causeMaxAgents cause = "max_agents"
)

// ending is the end of a session.
type ending struct {
	cause cause
	// err says more; nil: there is no more.
	err error
}

// abandonedError: the receiver could not restore an agent.
type abandonedError struct {
	// left is how many commands were not taken back.
	left int
	err  error
}

func (e *abandonedError) Error() string {
	return fmt.Sprintf("%d of the commands that it was told are not taken back: %v", e.left, e.err)
}

func (e *abandonedError) Unwrap() error { return e.err }

// endingOf returns the ending for an error of carryOutOrders.
func endingOf(err error) ending {
	var abandoned *abandonedError
	if err == nil || errors.As(err, &abandoned) {
		return ending{cause: causeShutdown, err: err}
	}
	return ending{cause: causeOf(err), err: err}
}

// causeOf returns the cause of an error.
func causeOf(err error) cause {
	var silent *timeoutError
	var bad *lttngagent.ProtocolError
	var unasked unexpectedDataError
	var memory *memoryError
	switch {
	case errors.As(err, &silent):
		return causeSilent
	case errors.As(err, &bad), errors.As(err, &unasked):
		return causeBadData
	case errors.As(err, &memory):
		return causeMemory
	default:
		return causeClosed
	}
}

// isOrdinary reports whether agents go so without anything being wrong.
func (e ending) isOrdinary() bool {
	return e.cause == causeClosed || e.cause == causeShutdown && e.err == nil
}

// canReadCommands reports whether an agent may still read commands before the connection
// closes. An agent that exceeded a timeout doesn't.
func (e ending) canReadCommands() bool { return e.cause == causeBadData || e.cause == causeMemory }

// forgets reports whether an agent of a domain that has gone so has forgotten what it was
// told. Java's forget it when the last handler is closed, and then close the connection;
// where it is lost in any other way they come back and know it, and so do Python's.
func (e ending) forgetsCommands(domain lttngagent.Domain) bool {
	return errors.Is(e.err, errAgentClosed) && domain != lttngagent.Python
}

// endingTexts are the texts of causes in log records.
var endingTexts = map[cause]string{
	causeClosed:   "it closed the connection",
	causeSilent:   "it did not answer in time",
	causeBadData:  "it sent what cannot be read",
	causeMemory:   "the names of its loggers have no room",
	causeShutdown: "the receiver left it",
}
