// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// ending is why and how a run ends. Its makers below are all there are.
type ending struct {
	cause callevent.Cause
	how   manner
	// text and err are what the log says, and the agent is told.
	text string
	err  error
}

// Error is what an agent is told.
func (e ending) Error() string {
	if e.err == nil {
		return e.text
	}
	return e.text + ": " + e.err.Error()
}

// level is how much the log makes of it.
func (e ending) level() zapcore.Level {
	if e.how == mannerError || e.cause == callevent.CauseDisconnected {
		return zapcore.WarnLevel
	}
	return zapcore.InfoLevel
}

// manner is how an agent is left.
type manner uint8

const (
	// mannerSuspend: it is told to suspend, after which it sends what it has, and
	// then error.
	mannerSuspend manner = iota
	// mannerError: it is told error, after which it ends tracing at once. What it
	// still sends is not wanted.
	mannerError
	// mannerNone: it has closed, or is closing, its connections itself.
	mannerNone
)

func endedByAgent() ending {
	return ending{cause: callevent.CauseEnded, how: mannerNone, text: "the agent ended the run"}
}

func disconnected(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: mannerNone, text: "the control connection was lost", err: err}
}

// shownRunes is how much of an agent's text stands in a line of the log. The log record of the
// error has all of it.
const shownRunes = 256

func failedInAgent(text string) ending {
	return ending{
		cause: callevent.CauseDisconnected, how: mannerNone,
		// The line's message stays the same, so that the log's sampling knows it again.
		text: "the agent reported an error", err: fmt.Errorf("%.*q", shownRunes, text),
	}
}

func shutdown() ending {
	return ending{cause: callevent.CauseShutdown, how: mannerSuspend, text: "the receiver is shutting down"}
}

func startFailed(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: mannerError, text: "the agent could not be started", err: err}
}

// goneBeforeStart: the agent has closed its connection before it was started. Its program
// may be traced all the same: a guard that waited for a stopped collector for too long has
// connected again.
func goneBeforeStart(err error) ending {
	return ending{cause: callevent.CauseEnded, how: mannerNone, text: "the agent closed its connection before it was started", err: err}
}

func unresponsive(silence time.Duration) ending {
	return ending{
		cause: callevent.CauseUnresponsive, how: mannerError,
		text: fmt.Sprintf("no heartbeat for %v (missed_heartbeats times agent.heartbeat_interval)", silence),
	}
}

func givenUpForBadData(connection string, err error) ending {
	return ending{
		cause: callevent.CauseBadData, how: mannerError,
		text: "what came on a " + connection + " connection could not be read", err: err,
	}
}

func dataLost(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: mannerError, text: "a data connection was lost", err: err}
}

func gaveWay(limit *limitError) ending {
	return ending{
		cause: callevent.CauseLimit, how: mannerError,
		text: "another agent needs the place: neither a heartbeat nor data came", err: limit,
	}
}

// outOfMemory: the run, or the process, holds as much as it may. why says which bound it
// is, and the setting.
func outOfMemory(why error) ending {
	return ending{cause: callevent.CauseLimit, how: mannerError, text: why.Error()}
}
