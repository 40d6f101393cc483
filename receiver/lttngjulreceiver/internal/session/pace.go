// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "time"

// FirstPause is the time between the first two lists.
const FirstPause = 250 * time.Millisecond

// listPace decides when to ask an agent for its loggers: immediately, then after a pause
// that doubles up to an interval. A change resets the pause. Programs attach their handlers
// some time after the registration, and agents don't report it.
type listPace struct {
	// first is the first pause.
	first, interval time.Duration
	pause           time.Duration
	due             time.Time
}

// isDue reports whether it is time for a list.
func (p *listPace) isDue(now time.Time) bool { return !now.Before(p.due) }

// listed schedules the next list. changed: the loggers differ from the last list.
func (p *listPace) listed(now time.Time, changed bool) {
	if changed || p.pause == 0 {
		p.pause = p.first
	} else {
		p.pause *= 2
	}
	p.pause = min(p.pause, p.interval)
	p.due = now.Add(p.pause)
}

// changed schedules a list now, after a command that may change the loggers.
func (p *listPace) changed() { p.pause, p.due = 0, time.Time{} }

// Silence is how long an agent of the RFC must be silent before the first list. An agent of 2.0 registers within a second
// after it has connected, and a command of the RFC would end its thread.
const Silence = time.Second
