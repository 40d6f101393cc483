// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// environment is shared by all agents.
type environment struct {
	*receiverkit.Run
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	telemetry *telemetry
	counts    *counts
	// logs is nil if no pipeline accepts log records.
	logs  *logSink
	lines lines
	hooks
}

// lines are log lines that can be written very often.
type lines struct {
	registered, gone, lost, refused, refusedCommand, unlisted, unaccepted logline.Seldom
}

// hooks are the times and functions that tests change.
type hooks struct {
	// checkPortFiles is the time between two checks of the port files. Agents look for a
	// daemon as often.
	checkPortFiles time.Duration
	// firstPause is the time between the first two lists of an agent.
	firstPause time.Duration
	// silence is how long an agent of the RFC must be silent before the first list.
	silence time.Duration
	// finding returns the function that finds processes.
	finding func(findProcess) findProcess
}

var defaultHooks = hooks{
	checkPortFiles: 3 * time.Second, firstPause: session.FirstPause, silence: session.Silence,
	finding: func(f findProcess) findProcess { return f },
}

func newEnvironment(run *receiverkit.Run, config *Config, telemetry *telemetry, hooks hooks) *environment {
	return &environment{
		Run: run, config: config, telemetry: telemetry, hooks: hooks,
		eventsOff: eventswitch.Off(config.Events),
		counts:    &counts{},
		logs:      newLogSink(run, &config.Limits, telemetry),
	}
}

// newSessions returns the group of the sessions of all agents.
func newSessions(env *environment) *session.Group {
	return session.NewGroup(session.Settings{
		Dialect:             env.config.dialect(),
		RegistrationTimeout: env.config.Limits.RegistrationTimeout, CommandTimeout: env.config.CommandTimeout,
		FirstPause: env.firstPause, ListInterval: env.config.ListInterval, Silence: env.silence,
		List: env.config.Limits.ofList(), MaxNameBytes: env.config.Limits.MaxInventoryBytes, Memory: env.Memory,
		FindProcess: env.finding(process.NewFinder(env.config.ProcessCommandArgs).Find),
		Serving:     env.Serving.Done(), Delivering: env.Delivering.Done(), Now: env.Now,
	})
}

// findProcess finds the process of an agent, as process.Finder does.
type findProcess = func(conn net.Conn, since time.Time, pid uint32, cancelled <-chan struct{}) (process.Process, bool)
