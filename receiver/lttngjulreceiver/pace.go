// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import "time"

// firstPause is the time between the first two lists.
const firstPause = 250 * time.Millisecond

// pace is when an agent is asked for its loggers: at once, then after a pause that
// doubles up to an interval. It begins anew when something has changed: programs attach
// their handlers, and so get their loggers, some time after their agent has registered,
// and agents don't say so.
type pace struct {
	// first is the first pause.
	first, interval time.Duration
	pause           time.Duration
	due             time.Time
}

// isDue reports whether it is time for a list.
func (p *pace) isDue(now time.Time) bool { return !now.Before(p.due) }

// listed says that the agent was asked, and whether its loggers were others than before.
func (p *pace) listed(now time.Time, changed bool) {
	if changed || p.pause == 0 {
		p.pause = p.first
	} else {
		p.pause *= 2
	}
	p.pause = min(p.pause, p.interval)
	p.due = now.Add(p.pause)
}

// changed says that the agent was told something that may change its loggers.
func (p *pace) changed() { p.pause, p.due = 0, time.Time{} }

// silence is how long an agent of the RFC has said nothing when it is asked for the first
// time. One of 2.0 registers as soon as it has connected, and has a second for that: what
// it would be asked in the words of the RFC would end its thread.
const silence = time.Second
