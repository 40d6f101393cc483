// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"net"
	"sync"
)

// Client asks a server over one connection, which it owns. Its methods may be called from
// many goroutines.
type Client struct {
	conn   net.Conn
	config Config

	// writing is held while a request is written.
	writing sync.Mutex
	out     []byte // reused

	// tolerating is held while data are read tolerantly, for which there is memory once.
	tolerating sync.Mutex

	// ended is closed when the connection has ended.
	ended chan struct{}

	mu sync.Mutex
	// err is why the connection has ended; nil: it has not.
	err error
	// lastID is the send_id of the last request.
	lastID int32
	// version is the answer to a probe, until somebody asks for the version.
	version *Answer
	// running are the requests that somebody waits for, left those that nobody waits for any
	// more and the server has not ended.
	running map[int32]*queue
	left    map[int32]struct{}
	// beats are the heartbeats without an answer, the oldest first.
	beats []int32
	// lastResp is the last resp_id, where there was one.
	lastResp    int32
	hasLastResp bool
	stats       Stats
}

// NewClient makes a client of a connection, on which nothing was said yet. It says nothing before it is asked, or serves.
func NewClient(conn net.Conn, config Config) *Client {
	return &Client{
		conn: conn, config: config.withDefaults(), ended: make(chan struct{}),
		running: map[int32]*queue{}, left: map[int32]struct{}{},
	}
}

// Stats count what came until now.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Unanswered = uint64(len(c.beats))
	return stats
}

// nextID gives an ID that no request under way has. After the largest comes the lowest.
func (c *Client) nextID() int32 {
	for {
		c.lastID++
		_, running := c.running[c.lastID]
		_, left := c.left[c.lastID]
		if !running && !left {
			return c.lastID
		}
	}
}

// end has the connection be over, for a reason, of which the first one counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	_ = c.conn.Close() // nothing was promised to the server
	close(c.ended)
}

// whyEnded is why the connection has ended.
func (c *Client) whyEnded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
