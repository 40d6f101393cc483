// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// ErrRunOver reports a data connection whose run accepts no more.
var ErrRunOver = errors.New("the run is over")

// TooManyConnections reports a data connection beyond those that the agent was configured to open.
type TooManyConnections struct{ Limit int }

func (e *TooManyConnections) Error() string {
	return fmt.Sprintf("agent.data_connections is reached (%d)", e.Limit)
}

// dataConnections are the data connections of a run. They are for many goroutines.
type dataConnections struct {
	// expected is how many the agent was configured to open.
	expected int

	mu sync.Mutex
	// open are those that are read. left are no longer read, and the agent has not closed them.
	open     map[*connreader.Reader]struct{}
	left     []net.Conn
	attached int
	closed   bool
	// joined is closed when the first is attached.
	joined chan struct{}
	// changed is notified when data has arrived on one, or one is no longer read.
	changed hq.Signal
	// finished waits for the goroutines of all.
	finished sync.WaitGroup
}

func newDataConnections(expected int) *dataConnections {
	return &dataConnections{expected: expected, open: map[*connreader.Reader]struct{}{}, joined: make(chan struct{})}
}

// attach adds a connection. The error is ErrRunOver or *TooManyConnections. The caller calls release
// when it no longer reads the connection, and finished.Done when it has delivered everything.
func (d *dataConnections) attach(in *connreader.Reader) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrRunOver
	}
	if len(d.open) >= d.expected {
		return &TooManyConnections{Limit: d.expected}
	}
	d.open[in] = struct{}{}
	d.attached++
	if !isClosed(d.joined) {
		close(d.joined)
	}
	d.finished.Add(1)
	return nil
}

// detach undoes attach, for a connection that is not read after all.
func (d *dataConnections) detach(in *connreader.Reader) {
	defer d.changed.Notify()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, in)
	d.attached--
	d.finished.Done()
}

// release removes a connection that is no longer read. It closes one that has ended. Another one
// is left for part, unless part was called before.
func (d *dataConnections) release(in *connreader.Reader, ended bool) {
	if ended {
		_ = in.Conn().Close()
	}
	defer d.changed.Notify()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, mine := d.open[in]; mine && !ended {
		d.left = append(d.left, in.TakeAway())
	}
	delete(d.open, in)
}

// reading returns how many are read.
func (d *dataConnections) reading() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// refuseUnlessJoined refuses all further connections if none has joined, and reports whether it does.
func (d *dataConnections) refuseUnlessJoined() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isClosed(d.joined) {
		return false
	}
	d.closed = true
	return true
}

// complete reports whether no more data can arrive: all expected connections have ended, or those
// that joined have ended and further ones are refused.
func (d *dataConnections) complete() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open) == 0 && (d.closed || d.attached >= d.expected)
}

// caughtUp reports whether all received bytes of all connections were processed.
func (d *dataConnections) caughtUp() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for in := range d.open {
		if !in.CaughtUp() {
			return false
		}
	}
	return true
}

// part refuses further connections, and returns all that the agent has not closed. Their readers
// stop.
func (d *dataConnections) part() []net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	parted := d.left
	d.left = nil
	for in := range d.open {
		parted = append(parted, in.TakeAway())
		delete(d.open, in)
	}
	return parted
}
