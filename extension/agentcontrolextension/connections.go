// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections bounds those of a server: when there are too many, the oldest that waits for
// nothing goes, so that who is silent keeps nobody out. Without one, the new one goes.
type connections struct {
	max  int
	full func()

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]*list.Element
	// silent are those that have no request, or not all of its header, the oldest first. The
	// elements of others are nil.
	silent list.List
}

func newConnections(max int, full func()) *connections {
	return &connections{max: max, full: full, open: map[net.Conn]*list.Element{}}
}

// note is the ConnState of a server.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	if surplus := c.change(conn, state); surplus != nil {
		_ = surplus.Close() // its end is noted
	}
}

// change gives the connection that has to be closed for it, or nil.
func (c *connections) change(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.open[conn]; element != nil {
		c.silent.Remove(element)
	}
	delete(c.open, conn)
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		return nil
	case state == http.StateActive:
		c.open[conn] = nil
		return nil
	case c.closed:
		return conn
	}
	if state == http.StateNew && len(c.open) >= c.max {
		c.full()
		if surplus = c.giveUp(); surplus == nil {
			return conn
		}
	}
	c.open[conn] = c.silent.PushBack(conn)
	return surplus
}

// giveUp forgets the oldest silent connection, and gives it; nil: none is silent.
func (c *connections) giveUp() net.Conn {
	oldest := c.silent.Front()
	if oldest == nil {
		return nil
	}
	conn := c.silent.Remove(oldest).(net.Conn)
	delete(c.open, conn)
	return conn
}

// close closes those that are silent, and all that will be.
func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	var all []net.Conn
	for conn := c.giveUp(); conn != nil; conn = c.giveUp() {
		all = append(all, conn)
	}
	c.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close() // nobody reads what could be wrong
	}
}
