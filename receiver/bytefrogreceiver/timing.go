// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// timing has the times that the behaviour of agents requires.
type timing struct {
	session.Timing
	// parting is how long an agent has at a shutdown to close its connections after it was sent an
	// error: it does so after its heartbeat interval. control is how long its control connection
	// outlives its data connections if the receiver has to close them.
	parting, control time.Duration
	// hello is how long a new connection has for its first message when the shutdown has begun: an
	// agent sends it immediately.
	hello time.Duration
	// ready is how long after start a refused agent gets its error message, unless it
	// was ready before.
	ready time.Duration
	// unproven is how long a run keeps its place at limits.max_runs though its agent has
	// sent neither a heartbeat nor data. giveWay is how long a new agent waits for the place.
	unproven, giveWay time.Duration
	// slotGrace is how long a connection that has sent nothing keeps its slot when most are new.
	slotGrace time.Duration
}

// farewellTime is how much longer than shutdown_timeout a shutdown may take for work that does not
// depend on the pipeline: the first messages of new connections, the rest of the agents' data, and
// the end of connections in the order that lets the programs live. It is more than the sum of the
// times of one agent.
const farewellTime = 6 * time.Second

func defaultTiming() timing {
	return timing{
		Timing: session.Timing{
			Farewell: time.Second,
			Quiet:    time.Second,
			Complete: 20 * time.Millisecond,
			Drain:    time.Minute,
			Discard:  time.Second,
			Answer:   5 * time.Second,
			Prepared: 500 * time.Millisecond,
			Untraced: 30 * time.Second,
		},
		parting: 3 * time.Second,
		control: 300 * time.Millisecond,
		hello:   time.Second,
		ready:   500 * time.Millisecond,

		unproven: 2 * time.Second, giveWay: 2 * time.Second, slotGrace: slots.Grace,
	}
}
