// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "time"

// timing are the times that an agent's behaviour asks for.
type timing struct {
	// answer is how long the data break that answers suspend is waited for before the
	// agent is told to trace again; farewell the same before it is left.
	answer, farewell time.Duration
	// quiet is how long nothing has to come of an agent that is left for all to have come,
	// complete the same where the counts say that all has come, and drain how long that
	// may take at the most.
	quiet, complete, drain time.Duration
	// parting is how much longer than its heartbeat interval an agent has to close its
	// connections when it was told error; control how long its control connection
	// outlives its data connections if they have to be closed.
	parting, control time.Duration
	// orphan is for how long nothing has to come of data connections whose control
	// connection has ended for them to be closed.
	orphan time.Duration
	// linger is how long an agent that was told that it is over has to close its connections,
	// and one that was started to open a data connection, or to be heard; rest the same for
	// one that has begun a message on its control connection to say the rest of it.
	linger, rest time.Duration
	// lastSilence is after how long a guard that ends gives a collector up that takes nothing.
	lastSilence time.Duration
	// hello is how long a new connection has to say what it is when the guard ends.
	hello time.Duration
	// ready is how long after start an agent is told error that is turned away, unless it
	// was ready before.
	ready time.Duration
	// prepared is how long after its first data connection an agent is taken to obey orders,
	// without a sign of it.
	prepared time.Duration
	// tick is how often a session looks what time has done.
	tick time.Duration
	// steady is how long a link has to live, or to take all, for the next pause to be the
	// first again.
	steady time.Duration
}

func defaultTiming() timing {
	return timing{
		answer: 5 * time.Second, farewell: time.Second,
		quiet: time.Second, complete: 20 * time.Millisecond, drain: 5 * time.Second,
		parting: 500 * time.Millisecond, control: 300 * time.Millisecond,
		orphan: 10 * time.Second, linger: time.Minute, rest: time.Minute, lastSilence: 3 * time.Second, hello: time.Second, ready: 500 * time.Millisecond,
		prepared: 500 * time.Millisecond,
		tick:     250 * time.Millisecond, steady: time.Minute,
	}
}
