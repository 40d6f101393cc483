// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"go.uber.org/zap"
)

// rateWatch warns when the call rate of a run exceeds a limit.
type rateWatch struct {
	// limit is in events per second; 0: no limit.
	limit int
	// at is when the rate was computed last, and events is the number of events then.
	at     time.Time
	events uint64
	warned time.Time
}

// warnPause is the least time between two warnings of one run.
const warnPause = time.Minute

// check computes the rate since the last check. events is the number of all received events.
func (w *rateWatch) check(now time.Time, events uint64, logger *zap.Logger) {
	seconds := now.Sub(w.at).Seconds()
	if seconds <= 0 {
		return
	}
	rate := float64(events-w.events) / seconds
	w.at, w.events = now, events
	if w.limit == 0 || rate < float64(w.limit) || now.Sub(w.warned) < warnPause {
		return
	}
	w.warned = now
	logger.Warn("The call rate exceeds warn_events_per_second: exclude classes with agent.exclusions, or name the wanted ones in agent.inclusions",
		zap.Float64("events_per_second", rate), zap.Int("warn_events_per_second", w.limit))
}
