// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/callevent"
)

// ending is why and how a run ends. Its makers below are all there are.
type ending struct {
	cause callevent.Cause
	how   farewell
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
	if e.how == farewellError || e.cause == callevent.CauseDisconnected {
		return zapcore.WarnLevel
	}
	return zapcore.InfoLevel
}

// farewell is how an agent is left.
type farewell uint8

const (
	// farewellSuspend: it is told to suspend, after which it sends what it has, and
	// then error.
	farewellSuspend farewell = iota
	// farewellError: it is told error, after which it ends tracing at once. What it
	// still sends is not wanted.
	farewellError
	// farewellNone: it has closed, or is closing, its connections itself.
	farewellNone
)

func endedByAgent() ending {
	return ending{cause: callevent.CauseEnded, how: farewellNone, text: "the agent ended the run"}
}

func disconnected(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellNone, text: "the control connection was lost", err: err}
}

func failedInAgent(text string) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellNone, text: "the agent reported an error: " + text}
}

func shutdown() ending {
	return ending{cause: callevent.CauseShutdown, how: farewellSuspend, text: "the receiver is shutting down"}
}

func startFailed(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellError, text: "the agent could not be started", err: err}
}

func unresponsive(silence time.Duration) ending {
	return ending{
		cause: callevent.CauseUnresponsive, how: farewellError,
		text: fmt.Sprintf("no heartbeat for %v (missed_heartbeats times agent.heartbeat_interval)", silence),
	}
}

func givenUpForBadData(connection string, err error) ending {
	return ending{
		cause: callevent.CauseBadData, how: farewellError,
		text: "what came on a " + connection + " connection could not be read", err: err,
	}
}

func dataLost(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellError, text: "a data connection was lost", err: err}
}

func outOfMemory(limit int) ending {
	e := &limitError{setting: "limits.max_run_memory", limit: limit}
	return ending{cause: callevent.CauseLimit, how: farewellError, text: e.Error()}
}
