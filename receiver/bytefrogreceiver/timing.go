// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// timing are the times of leaving, refusing and suspending that the agent's behaviour requires.
type timing struct {
	// farewell is how long an agent has to answer the last suspend.
	farewell time.Duration
	// quiet is how long nothing has to arrive until all counts as arrived.
	quiet time.Duration
	// complete is the same when as many numbers have arrived as the agent gave out.
	complete time.Duration
	// drain bounds the reading of the rest; time in which the pipeline refuses doesn't count.
	// discard bounds it when the shutdown's time is over.
	drain, discard time.Duration
	// parting is how long an agent has at a shutdown to close its connections when it was sent
	// error: it does so after its heartbeat interval. control is how long its control connection
	// outlives its data connections if they have to be closed.
	parting, control time.Duration
	// answer is how long an agent has to answer suspend before it is sent unsuspend all the same.
	answer time.Duration
	// hello is how long a new connection has for its first message when the shutdown has begun: an
	// agent sends it immediately.
	hello time.Duration
	// ready is how long after start an agent that is turned away gets its error message, unless it
	// was ready before.
	ready time.Duration
	// unproven is how long a run keeps its place at limits.max_runs though its agent has
	// sent neither a heartbeat nor data; giveWay is how long a new agent waits for the place.
	unproven, giveWay time.Duration
	// slotGrace is how long a connection that has sent nothing keeps its slot, where few are new.
	slotGrace time.Duration
	// prepared is how long after its first data connection an agent counts as prepared for commands,
	// without a sign of it.
	prepared time.Duration
	// untraced is how long a run may trace no class before the log warns.
	untraced time.Duration
}

// farewellTime is how much longer than shutdown_timeout a shutdown may take for what
// doesn't depend on the pipeline: the first messages of new connections, the rest of the agents'
// data, and closing connections in the order that lets the programs live.
// It is more than the times of one agent (timing) together.
const farewellTime = 6 * time.Second

func defaultTiming() timing {
	return timing{
		farewell: time.Second,
		quiet:    time.Second,
		complete: 20 * time.Millisecond,
		drain:    time.Minute,
		discard:  time.Second,
		parting:  1500 * time.Millisecond,
		control:  300 * time.Millisecond,
		answer:   5 * time.Second,
		hello:    time.Second,
		ready:    500 * time.Millisecond,
		prepared: 500 * time.Millisecond,
		untraced: 30 * time.Second,

		unproven: 2 * time.Second, giveWay: 2 * time.Second, slotGrace: slots.Grace,
	}
}
