// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"slices"
	"time"
)

// beat sends heartbeats ("心跳") until the connection ends, which it does when they have no
// answers.
func (c *Client) beat() {
	ticker := time.NewTicker(c.config.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		unanswered := len(c.beats)
		id := c.nextID()
		if unanswered < c.config.MaxUnanswered {
			c.beats = append(c.beats, id)
			c.stats.Heartbeats++
		}
		c.mu.Unlock()
		if unanswered >= c.config.MaxUnanswered {
			c.end(fmt.Errorf("%w: %d in a row, one every %v", ErrSilent, unanswered, c.config.Heartbeat))
			return
		}
		if c.write(Request{Version: c.config.Version, SendID: id, Type: Heartbeat, Data: []byte(nothing)}) != nil {
			return
		}
	}
}

// beaten says that a reply is one to a heartbeat. Whatever it says the server is there: the
// document has it say {}, and servers may say nothing.
func (c *Client) beaten(id int32) bool {
	i := slices.Index(c.beats, id)
	c.beats = slices.Delete(c.beats, 0, i+1) // earlier ones are not in a row any more
	return i >= 0
}
