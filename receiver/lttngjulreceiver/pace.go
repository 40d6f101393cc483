// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import "time"

// firstPause is the time between the first two lists.
const firstPause = 250 * time.Millisecond

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

// listed schedules the next list. changed says that the loggers differ from the last list.
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

// silence is the time without data after which an agent of the RFC is asked for its
// loggers. An agent of 2.0 registers within a second after it has connected; a command of
// the RFC would end its thread.
const silence = time.Second
