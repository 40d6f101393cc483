// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
)

// environment is shared by all agents.
type environment struct {
	*receiverkit.Run
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff   map[string]bool
	telemetry   *telemetry
	pendingUndo *pendingUndo
	// inventories bounds the names of loggers in memory.
	inventories *inventories
	lookups     *lookups
	counts      *counts
	// logs is nil if no pipeline takes log records.
	logs  *logSink
	lines lines
	hooks
}

// lines are log lines that can be written very often.
type lines struct {
	registered, gone, lost, refused, refusedCommand, unlisted, unaccepted logline.Seldom
}

// hooks are the times that tests change.
type hooks struct {
	// checkPortFiles is the time between two checks of the port files. Agents look for a
	// daemon as often.
	checkPortFiles time.Duration
	// firstPause is the time between the first two lists of an agent.
	firstPause time.Duration
	// silence is the time that an agent of the RFC has to be silent before the first list.
	silence time.Duration
}

var defaultHooks = hooks{checkPortFiles: 3 * time.Second, firstPause: firstPause, silence: silence}

func newEnvironment(run *receiverkit.Run, config *Config, telemetry *telemetry, hooks hooks) *environment {
	return &environment{
		Run: run, config: config, telemetry: telemetry, hooks: hooks,
		eventsOff:   eventswitch.Off(config.Events),
		pendingUndo: &pendingUndo{},
		inventories: newInventories(config.Limits.MaxInventoryBytes, run.Memory),
		lookups:     newLookups(config.ProcessCommandArgs),
		counts:      &counts{},
		logs:        newLogSink(run, &config.Limits, telemetry),
	}
}
