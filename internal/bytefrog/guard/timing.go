// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "time"

// timing are the times that an agent's behaviour requires.
type timing struct {
	// answer is how long an agent has to answer suspend with a data break before it is sent unsuspend
	// all the same; farewell the same before the guard disconnects from it.
	answer, farewell time.Duration
	// quiet is how long nothing has to arrive of an agent in its farewell until all counts as arrived,
	// complete the same when as many numbers have arrived as it gave out, and drain how long that
	// may take at most.
	quiet, complete, drain time.Duration
	// parting is how much longer than its heartbeat interval an agent has to close its connections
	// when it was sent error; control how long its control connection outlives its data connections
	// if they have to be closed.
	parting, control time.Duration
	// orphan is how long nothing has to arrive on data connections, whose control connection has
	// ended, until they are closed.
	orphan time.Duration
	// linger is how long an agent that was sent error has to close its connections, and one that was
	// started to open a data connection or to send a message; rest is how long a message on a control
	// connection may take to arrive whole.
	linger, rest time.Duration
	// lastSilence is after how long a guard that ends gives a collector up that reads nothing.
	lastSilence time.Duration
	// hello is how long a new connection has for its first message when the guard ends.
	hello time.Duration
	// ready is how long after start an agent that is turned away gets its error message, unless it
	// was ready before.
	ready time.Duration
	// prepared is how long after its first data connection an agent counts as prepared for commands,
	// without a sign of it.
	prepared time.Duration
	// tick is how often a session checks what time has changed.
	tick time.Duration
	// steady is how long a link has to live for the next pause to be the first again.
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
