// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// How many numbers one connection may be ahead (pacing.go) says nothing of time: where
// the machine is busy enough, or the pipeline slow, what another is behind takes seconds
// to be read. stack_pairing gives numbers up by time, which begins with the first event
// that is ahead. So before events are packed, the numbers that are missing below them
// have to be few enough to come in time, as fast as the run was read of late; or whoever
// brings the events waits.
//
// Only one that has something to handle holds others up, and only until it has come so
// far, or has handled all that had been sent when they began to wait. Whoever is
// furthest behind never waits, so there is always one that goes on.

// lead is how far a connection may be ahead in time. It is for its goroutine.
type lead struct {
	// most is in how much time what is missing has to come.
	most time.Duration
	// numbers is how many came in that time; received of them had come at the time at,
	// when that was reckoned.
	numbers  int64
	received uint64
	at       time.Time
}

// allows reports whether so many numbers may be missing, where received have come.
func (l *lead) allows(missing int64, received uint64, now time.Time) bool {
	if passed := now.Sub(l.at); passed >= l.most {
		if !l.at.IsZero() {
			l.numbers = int64(float64(received-l.received) * float64(l.most) / float64(passed))
		}
		l.received, l.at = received, now
	}
	return missing <= l.numbers
}

// keepTime waits before events are packed, if what is missing below them is too much to
// come in time and there on other connections. It gives those of them that can be packed
// then:
//
//  1. Where not too much is missing below the last of them, all can be packed.
//  2. Else only those before a gap in their own numbers: what is behind it has to wait
//     anew.
//  3. The connection's position becomes the first of these, so that it holds up nobody
//     who is behind it.
//  4. Where too much is still missing, it waits until little enough is, or no connection
//     that is further behind has anything to handle, or all that was sent when the wait
//     began has been handled.
func (d *dataConnection) keepTime(events []bytefrog.Event, now time.Time) []bytefrog.Event {
	s := d.run.stream
	reference := s.Next()
	early := func() bool {
		next := stream.Unwrap(reference, events[len(events)-1].Sequence) + 1
		// What pacing has given up on is not on any connection.
		missing := s.MissingBelow(next, uint64(len(events))) - d.run.pacing.forgiven.Load()
		return !d.lead.allows(missing, s.Received(), now)
	}
	if !early() {
		return events
	}
	events = events[:untilGap(events, d.lead.numbers)]
	d.position.Store(stream.Unwrap(reference, events[0].Sequence))
	if !early() || !d.run.data.anyBehind(d) {
		return events
	}
	d.waits.Store(true)
	defer d.waits.Store(false)
	sent := d.run.data.others(d)
	ticker := time.NewTicker(paceInterval)
	defer ticker.Stop()
	for again := true; again && len(sent) > 0 && early() && d.run.data.anyBehind(d); d.caughtUpWith(sent) {
		now, again = d.pause(ticker.C)
	}
	return events
}

// untilGap is how many of the events, the first in any case, come before one that is
// further ahead of the first than if they were all that is missing, and so many more.
func untilGap(events []bytefrog.Event, more int64) int {
	most := int64(len(events)) + more
	for i := range events {
		if int64(int32(events[i].Sequence-events[0].Sequence)) > most {
			return i
		}
	}
	return len(events)
}

// anyBehind reports whether another connection is further behind and has something to
// handle.
func (d *dataConnections) anyBehind(c *dataConnection) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := c.position.Load()
	for other := range d.open {
		if other != c && other.position.Load() < at && !other.in.caughtUp() {
			return true
		}
	}
	return false
}
