// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// The connections of a run are read by goroutines of their own, and each can be
// behind what the agent has sent: because the pipeline holds it up, or the machine
// is busy. What one of them says is only then to be judged by what has come on
// another when that one has caught up.

const (
	// catchUpPause is how often a connection that waits for another looks.
	catchUpPause = 50 * time.Microsecond
	// catchUpPatience is how long a batch waits for the control connection: its
	// reader waits for nobody, so it is a matter of being scheduled.
	catchUpPatience = 250 * time.Millisecond
	// catchUpBytes is what has to come on a connection that never runs dry, beside
	// the buffers of its agent, for it to have caught up with a moment: more than
	// sockets hold.
	catchUpBytes = 16 << 20
)

// caughtUp reports whether all that has come was read and handled.
func (in *input) caughtUp() bool {
	state := in.reader.Load()
	return state == readerNone || state == readerWaiting && socket.Drained(in.conn)
}

// awaitControl waits until what has come on the control connection was handled: a
// data break that was sent before events has to be in the batch that carries them.
func (r *run) awaitControl() {
	over := r.env.now().Add(catchUpPatience)
	for !isClosed(r.control.ended) && !r.control.in.caughtUp() && r.env.now().Before(over) {
		time.Sleep(catchUpPause)
	}
}

// reckoning asks whether the name of an event that has waited long enough can still
// be on its way: it is over when each other connection of the run has been read
// beyond what the agent can have sent when it began, and its own is not kept waiting.
type reckoning struct {
	begun time.Time
	// behind are the connections that were not, with what had come on them then.
	behind map[*dataConnection]uint64
}

// reckon begins a reckoning, or goes on with the last one, and says whether it is
// over, and when it had begun.
func (d *dataConnection) reckon(now time.Time) (begun time.Time, over bool) {
	r := d.reckoning
	if r == nil {
		r = &reckoning{begun: now, behind: d.run.data.others(d)}
		d.reckoning = r
	}
	if d.caughtUpWith(r.behind); len(r.behind) > 0 || d.waits.Load() {
		return time.Time{}, false
	}
	d.reckoning = nil
	return r.begun, true
}

// caughtUpWith takes those connections out of behind that have handled what the agent
// can have sent when others gave them.
func (d *dataConnection) caughtUpWith(behind map[*dataConnection]uint64) {
	enough := uint64(catchUpBytes + d.run.env.config.Agent.BufferMemory)
	data := &d.run.data
	data.mu.Lock()
	defer data.mu.Unlock()
	for other, came := range behind {
		_, still := data.open[other]
		if !still || other.in.caughtUp() || other.came.Load()-came >= enough {
			delete(behind, other)
		}
	}
}

// caughtUp reports whether all that has come on any of them was read and handled.
func (d *dataConnections) caughtUp() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if !c.in.caughtUp() {
			return false
		}
	}
	return true
}

// others are the other connections that are read, with what has come on each.
func (d *dataConnections) others(c *dataConnection) map[*dataConnection]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	others := map[*dataConnection]uint64{}
	for other := range d.open {
		if other != c {
			others[other] = other.came.Load()
		}
	}
	return others
}
