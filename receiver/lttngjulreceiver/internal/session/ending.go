// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Cause is the reason for the end of a session or connection.
type Cause string

// The causes.
const (
	// Closed: the agent closed the connection, or its process ended.
	Closed Cause = "closed"
	// Silent: the agent exceeded a timeout.
	Silent Cause = "silent"
	// BadData: the agent sent wrong data.
	BadData Cause = "bad_data"
	// Memory: the names of its loggers exceed the memory.
	Memory Cause = "memory"
	// Shutdown: the receiver shuts down.
	Shutdown Cause = "shutdown"
)

// Ending is the end of a session.
type Ending struct {
	Cause Cause
	// Err has the details, if there are any.
	Err error
}

// abandonedError: the receiver could not restore an agent.
type abandonedError struct {
	// remaining is the number of commands that were not undone.
	remaining int
	err       error
}

func (e *abandonedError) Error() string {
	return fmt.Sprintf("%d of its commands are not undone: %v", e.remaining, e.err)
}

func (e *abandonedError) Unwrap() error { return e.err }

// endingOf returns the ending for an error of carryOutAll.
func endingOf(err error) Ending {
	var abandoned *abandonedError
	if err == nil || errors.As(err, &abandoned) {
		return Ending{Cause: Shutdown, Err: err}
	}
	return Ending{Cause: CauseOf(err), Err: err}
}

// CauseOf returns the cause of an error.
func CauseOf(err error) Cause {
	var silent *TimeoutError
	var bad *lttngagent.ProtocolError
	var unexpected UnexpectedDataError
	var memory *memoryError
	switch {
	case errors.As(err, &silent):
		return Silent
	case errors.As(err, &bad), errors.As(err, &unexpected):
		return BadData
	case errors.As(err, &memory):
		return Memory
	default:
		return Closed
	}
}

// IsOrdinary reports whether nothing went wrong.
func (e Ending) IsOrdinary() bool {
	return e.Cause == Closed || e.Cause == Shutdown && e.Err == nil
}

// canReadCommands reports whether an agent may still read commands before the connection
// closes. An agent that exceeded a timeout doesn't.
func (e Ending) canReadCommands() bool { return e.Cause == BadData || e.Cause == Memory }

// forgetsCommands reports whether an agent of a domain has forgotten its commands. A Java agent forgets them when the
// program closes its last handler, and then closes the connection. After any other loss it connects again and knows
// them. A Python agent never forgets them.
func (e Ending) forgetsCommands(domain lttngagent.Domain) bool {
	return errors.Is(e.Err, errAgentClosed) && domain != lttngagent.Python
}
