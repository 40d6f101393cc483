// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"net"
	"sync"
)

// Client sends requests over one connection, which it owns. Many goroutines may call its methods.
type Client struct {
	conn   net.Conn
	config Config

	// writing is held while a request is written.
	writing sync.Mutex
	out     []byte // reused

	// tolerating is held while data are read tolerantly, so that only one call at a time uses that memory.
	tolerating sync.Mutex

	// ended is closed when the connection has ended.
	ended chan struct{}

	mu sync.Mutex
	// err is the reason why the connection has ended; nil means that it has not.
	err error
	// lastID is the send_id of the last request.
	lastID int32
	// version is the answer to a probe, until the first VersionCommand uses it.
	version *Answer
	// running are the requests with a waiting caller. abandoned are requests whose caller is gone and that the server
	// has not ended.
	running   map[int32]*queue
	abandoned map[int32]struct{}
	// beats are the unanswered heartbeats, the oldest first.
	beats []int32
	// lastResp is the last resp_id, valid if hasLastResp.
	lastResp    int32
	hasLastResp bool
	stats       Stats
}

// NewClient returns a client of a new connection. It sends nothing before Run or Serve.
func NewClient(conn net.Conn, config Config) *Client {
	return &Client{
		conn: conn, config: config.withDefaults(), ended: make(chan struct{}),
		running: map[int32]*queue{}, abandoned: map[int32]struct{}{},
	}
}

// Stats returns the current counts.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Unanswered = uint64(len(c.beats))
	return stats
}

// nextID returns an ID that no open request has. After the largest number follows the lowest.
func (c *Client) nextID() int32 {
	for {
		c.lastID++
		_, running := c.running[c.lastID]
		_, abandoned := c.abandoned[c.lastID]
		if !running && !abandoned {
			return c.lastID
		}
	}
}

// end closes the connection with a reason. Only the first reason counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	_ = c.conn.Close() // the error has no effect for the server
	close(c.ended)
}

// whyEnded returns the reason why the connection has ended.
func (c *Client) whyEnded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
