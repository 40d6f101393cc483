// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import "time"

// Call is a call of a method of the simulated program.
type Call struct {
	Class, Method string
	// Thread is the name of the thread, and ThreadID its ID.
	Thread   string
	ThreadID int64
	Cost     time.Duration
	// Throws is the type of the exception that the call throws; empty means that it returns. Message is its message.
	Throws, Message string
	// Line is the line of the call in its caller.
	Line int
	// Children are the calls that it makes.
	Children []Call
}

// ownCost returns the duration of a call without its callees.
func (c *Call) ownCost() time.Duration {
	own := c.Cost
	for i := range c.Children {
		own -= c.Children[i].Cost
	}
	return own
}
