// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// errRunOver: the run that a data connection is for takes none any more.
var errRunOver = errors.New("the run is over")

// dataConnections are those of a run.
type dataConnections struct {
	// expected is how many the agent was told to open.
	expected int

	mu sync.Mutex
	// open are those that are read; left those that are not any more, though the agent
	// has not closed them.
	open     map[*dataConnection]struct{}
	left     []net.Conn
	attached int
	closed   bool
	// joined is closed when the first has been taken in.
	joined chan struct{}
	// changed is notified when data has arrived on one, or one is no longer read.
	changed hq.Signal
	// finished waits for the goroutines of all.
	finished sync.WaitGroup
}

func (d *dataConnections) init(expected int) {
	d.expected, d.open, d.joined = expected, map[*dataConnection]struct{}{}, make(chan struct{})
}

// attach lets a connection join. The error says that the run takes none any more,
// or has all that its agent was told to open. After attach come release, when
// nothing more is read of it, and finished.Done, when all that came was handed on.
func (d *dataConnections) attach(c *dataConnection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errRunOver
	}
	if len(d.open) >= d.expected {
		return &limitError{setting: settingDataConnections, limit: d.expected}
	}
	d.open[c] = struct{}{}
	d.attached++
	if !isClosed(d.joined) {
		close(d.joined)
	}
	d.finished.Add(1)
	return nil
}

// detach undoes attach, for a connection that could not be made ready to be read.
func (d *dataConnections) detach(c *dataConnection) {
	defer d.changed.Notify()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
	d.attached--
	d.finished.Done()
}

// release says that nothing more is read of a connection. One that has ended is
// closed; another is kept for the agent's parting, unless that was before.
func (d *dataConnections) release(c *dataConnection, ended bool) {
	if ended {
		_ = c.in.Conn().Close()
	}
	defer d.changed.Notify()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, mine := d.open[c]; mine && !ended {
		d.left = append(d.left, c.in.Conn())
	}
	delete(d.open, c)
}

// reading is how many are being read.
func (d *dataConnections) reading() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// refuseUnlessJoined lets none join any more where none has, and reports whether that is
// so.
func (d *dataConnections) refuseUnlessJoined() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isClosed(d.joined) {
		return false
	}
	d.closed = true
	return true
}

// complete reports whether all that the agent was told to open have come and
// ended, or none can come any more and those that came have ended: no name will
// come that is not there yet.
func (d *dataConnections) complete() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open) == 0 && (d.closed || d.attached >= d.expected)
}

// caughtUp reports whether all that has arrived on all of them was read and handled.
func (d *dataConnections) caughtUp() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if !c.in.CaughtUp() {
			return false
		}
	}
	return true
}

// part lets none join any more, and gives all connections that the agent has not
// closed. Nobody reads them.
func (d *dataConnections) part() []net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	parted := d.left
	d.left = nil
	for c := range d.open {
		parted = append(parted, c.in.TakeAway())
		delete(d.open, c)
	}
	return parted
}
