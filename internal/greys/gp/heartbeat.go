// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"slices"
	"time"
)

// beat sends heartbeats ("心跳") until the connection ends. It ends the connection itself after too many unanswered
// heartbeats.
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

// answersHeartbeat reports whether a reply answers a heartbeat, and records that. Any data are accepted: the document
// requires {}, but servers may send none.
func (c *Client) answersHeartbeat(id int32) bool {
	i := slices.Index(c.beats, id)
	c.beats = slices.Delete(c.beats, 0, i+1) // earlier ones no longer count as consecutive
	return i >= 0
}
