// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// dataConnections are the data connections of an agent. They are safe for concurrent use.
type dataConnections struct {
	// joined is closed with the first.
	joined chan struct{}
	// changed is notified when data has arrived, and when all connections have ended that await
	// waits for.
	changed hq.Signal
	// reading counts those that are read.
	reading sync.WaitGroup
	// wasCut: one of them was cut off.
	wasCut atomic.Bool

	mu   sync.Mutex
	open map[net.Conn]struct{}
	// attached counts accepted connections, and expected is their maximum.
	attached, expected int
	// closed: no more are accepted.
	closed bool
}

func newDataConnections() dataConnections {
	return dataConnections{joined: make(chan struct{}), open: map[net.Conn]struct{}{}}
}

// expect sets the number of data connections in the agent's configuration.
func (d *dataConnections) expect(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected = n
}

// Reasons to refuse a data connection.
var (
	errRunOver = errors.New("the run is over")
	errRunFull = errors.New("the run has had all its data connections")
)

// attach accepts a data connection, and returns its number, from 0. After attach come detach and
// reading.Done.
func (d *dataConnections) attach(conn net.Conn) (i int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, errRunOver
	}
	if d.attached >= d.expected {
		return 0, errRunFull // also if one has ended, because the collector's has ended too
	}
	if i = d.attached; i == 0 {
		close(d.joined)
	}
	d.attached++
	d.open[conn] = struct{}{}
	d.reading.Add(1)
	return i, nil
}

// detach closes a data connection that has ended. It reports whether the agent has none left.
func (d *dataConnections) detach(conn net.Conn) (none bool) {
	_ = conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, conn)
	return len(d.open) == 0
}

// refuse accepts no data connection from now on.
func (d *dataConnections) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// refuseUnlessAttached accepts no data connection from now on if there has been none. It reports whether it refuses
// them.
func (d *dataConnections) refuseUnlessAttached() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attached > 0 {
		return false
	}
	d.closed = true
	return true
}

// close closes all data connections. Their readers may still wait for the collector.
func (d *dataConnections) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for conn := range d.open {
		_ = conn.Close()
	}
}

// ended returns a channel that is closed when all data connections have ended.
func (d *dataConnections) ended() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		d.reading.Wait()
		close(ended)
		d.changed.Notify()
	}()
	return ended
}
