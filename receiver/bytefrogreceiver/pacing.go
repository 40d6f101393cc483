// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

const (
	// paceInterval is how often a connection that waits for others looks.
	paceInterval = time.Millisecond
	// pacePatience is how long the others have to be read to their ends, and
	// nothing more comes, before they are no longer waited for: what is missing is
	// lost, or late for another reason.
	pacePatience = 100 * time.Millisecond
)

// pacing keeps the data connections of a run near to each other. An agent spreads
// its events over them evenly, but whoever reads them need not: what one
// connection is ahead of another has to wait in stack_pairing, whose memory for it
// is bounded. So a connection that is ahead is not read for a while.
//
// How far that is, is known exactly: numbers have no gaps, so what is missing
// below the highest number received stands unread on other connections.
type pacing struct {
	// limit is how many numbers may be missing.
	limit int64
	// forgiven is how many of them nothing came for in time; less when it came
	// after all.
	forgiven atomic.Int64
}

// tooFar reports whether more is missing than may be.
func (p *pacing) tooFar(n *stream.Stream) bool {
	missing, forgiven := n.Missing(), p.forgiven.Load()
	if missing < forgiven && p.forgiven.CompareAndSwap(forgiven, missing) {
		forgiven = missing
	}
	return missing > p.limit+forgiven
}

// keepPace waits, if this connection is ahead of another of its run and too much
// is missing, until the others have caught up or nothing comes on them.
func (d *dataConnection) keepPace() {
	s := d.run.stream
	if !d.run.pacing.tooFar(s) || d.run.data.isLast(d) {
		return
	}
	d.waits.Store(true)
	defer d.waits.Store(false)
	ticker := time.NewTicker(paceInterval)
	defer ticker.Stop()
	received, since := s.Received(), d.run.env.now()
	for d.run.pacing.tooFar(s) && !d.run.data.isLast(d) {
		now, goOn := d.pause(ticker.C)
		if !goOn {
			return
		}
		if n := s.Received(); n != received || !d.run.data.othersCaughtUp(d) {
			received, since = n, now
		} else if now.Sub(since) >= pacePatience {
			d.run.pacing.forgiven.Store(s.Missing())
			return
		}
	}
}

// pause lets the others of the run go on until next, and reports whether to look again
// then: there is nothing to wait for when the connection is not to be read any more, or
// what comes is dropped. An agent that is being left has sent more than was read, so
// that is no reason. Names, renames and old batches don't wait.
func (d *dataConnection) pause(next <-chan time.Time) (now time.Time, again bool) {
	select {
	case <-next:
	case <-d.run.memory.Full():
		return now, false
	case <-d.run.ctx.Done():
		return now, false
	}
	if d.in.taken.Load() {
		return now, false
	}
	now = d.run.env.now()
	if d.batch != nil {
		d.batch.AttendUnread(now)
	}
	return now, true
}

// othersCaughtUp reports whether all that has come on the other connections was
// read and handled. While the pipeline holds one up, what is missing is there. One that
// is no further behind and waits itself doesn't count: it waits for this one, and both
// would wait for ever for one that is behind them and nothing comes on.
func (d *dataConnections) othersCaughtUp(c *dataConnection) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other := range d.open {
		if other != c && !other.in.caughtUp() && !other.waitsFor(c) {
			return false
		}
	}
	return true
}

// waitsFor reports whether the connection waits, and c is not further ahead.
func (d *dataConnection) waitsFor(c *dataConnection) bool {
	return d.waits.Load() && d.position.Load() >= c.position.Load()
}

// isLast reports whether no other connection is further behind.
func (d *dataConnections) isLast(c *dataConnection) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other := range d.open {
		if other != c && other.position.Load() < c.position.Load() {
			return false
		}
	}
	return true
}
