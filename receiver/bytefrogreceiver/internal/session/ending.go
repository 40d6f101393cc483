// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Ending is why and how a run ends. The functions below make all endings.
type Ending struct {
	Cause callevent.Cause
	how   manner
	// Text and Err are for the log. Error joins them for the agent.
	Text string
	Err  error
}

// Error returns the text for the agent.
func (e Ending) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

// level returns the level of the log line.
func (e Ending) level() zapcore.Level {
	if e.how == mannerError || e.Cause == callevent.CauseDisconnected {
		return zapcore.WarnLevel
	}
	return zapcore.InfoLevel
}

// manner is how an agent is disconnected.
type manner uint8

const (
	// mannerSuspend: the agent gets suspend, and sends the rest of its data. Then it gets an error.
	mannerSuspend manner = iota
	// mannerError: the agent gets an error, and ends its tracing immediately. Data that it still
	// sends is discarded.
	mannerError
	// mannerNone: the agent has closed, or is closing, its connections itself.
	mannerNone
)

// ShuttingDown ends a run because the receiver is shut down.
func ShuttingDown() Ending {
	return Ending{Cause: callevent.CauseShutdown, how: mannerSuspend, Text: "the receiver is shutting down"}
}

// GaveWay ends a run whose agent was silent, because a limit leaves no room for another agent.
func GaveWay(limit error) Ending {
	return Ending{
		Cause: callevent.CauseLimit, how: mannerError,
		Text: "a new agent replaces this one, which has sent neither a heartbeat nor data", Err: limit,
	}
}

// Unresponsive ends a run whose agent has sent no heartbeat for some time.
func Unresponsive(silence time.Duration) Ending {
	return Ending{
		Cause: callevent.CauseUnresponsive, how: mannerError,
		Text: fmt.Sprintf("no heartbeat for %v (missed_heartbeats times agent.heartbeat_interval)", silence),
	}
}

// OutOfMemory ends a run whose memory, or that of the process, is full. why names the setting.
func OutOfMemory(why error) Ending {
	return Ending{Cause: callevent.CauseLimit, how: mannerError, Text: why.Error()}
}

func endedByAgent() Ending {
	return Ending{Cause: callevent.CauseEnded, how: mannerNone, Text: "the agent ended the run"}
}

func disconnected(err error) Ending {
	return Ending{Cause: callevent.CauseDisconnected, how: mannerNone, Text: "the control connection was lost", Err: err}
}

// shownRunes bounds an agent's text in a log line. The log record of the error has all of it.
const shownRunes = 256

func failedInAgent(text string) Ending {
	return Ending{
		Cause: callevent.CauseDisconnected, how: mannerNone,
		// The text is the same for all errors, so that the log's sampling recognises the line.
		Text: "the agent reported an error", Err: fmt.Errorf("%.*q", shownRunes, text),
	}
}

func startFailed(err error) Ending {
	return Ending{Cause: callevent.CauseDisconnected, how: mannerError, Text: "the agent could not be started", Err: err}
}

// goneBeforeStart: the agent closed its connection before it was started. Its program may still be
// traced: a guard that waited too long for a stopped collector has connected again.
func goneBeforeStart(err error) Ending {
	return Ending{Cause: callevent.CauseEnded, how: mannerNone, Text: "the agent closed its connection before it was started", Err: err}
}

func badData(connection string, err error) Ending {
	return Ending{
		Cause: callevent.CauseBadData, how: mannerError,
		Text: "data on a " + connection + " connection could not be read", Err: err,
	}
}

func dataLost(err error) Ending {
	return Ending{Cause: callevent.CauseDisconnected, how: mannerError, Text: "a data connection was lost", Err: err}
}
