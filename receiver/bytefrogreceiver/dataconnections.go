// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import "sync"

// dataConnections are those of a run.
type dataConnections struct {
	// expected is how many the agent was told to open.
	expected int

	mu       sync.Mutex
	open     map[*dataConnection]struct{}
	attached int
	closed   bool
	// finished waits for the goroutines of all.
	finished sync.WaitGroup
}

func (d *dataConnections) init(expected int) {
	d.expected, d.open = expected, map[*dataConnection]struct{}{}
}

// attach lets a connection join. The error says that the run takes none any more,
// or has all that its agent was told to open. After attach come release, when its
// socket is closed, and finished.Done, when all that came on it was handed on.
func (d *dataConnections) attach(c *dataConnection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errRunOver
	}
	if len(d.open) >= d.expected {
		return &limitError{setting: "agent.data_connections", limit: d.expected}
	}
	d.open[c] = struct{}{}
	d.attached++
	d.finished.Add(1)
	return nil
}

// detach undoes attach, for a connection that could not be made ready to be read.
func (d *dataConnections) detach(c *dataConnection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
	d.attached--
	d.finished.Done()
}

// release closes the socket of a connection, of which nothing more is read.
func (d *dataConnections) release(c *dataConnection) {
	_ = c.in.conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
}

// reading is how many are being read.
func (d *dataConnections) reading() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// complete reports whether all that the agent was told to open have come and
// ended, or none can come any more and those that came have ended: no name will
// come that is not there yet.
func (d *dataConnections) complete() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open) == 0 && (d.closed || d.attached >= d.expected)
}

// close closes the sockets of all, and lets none join.
func (d *dataConnections) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.open {
		_ = c.in.conn.Close()
	}
}
