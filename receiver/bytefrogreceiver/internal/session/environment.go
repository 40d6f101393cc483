// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// Environment is what all sessions share.
type Environment struct {
	// Receiver is the receiver from its start to its shutdown. A run is an agent's.
	Receiver  *receiverkit.Run
	Telemetry *telemetry.Telemetry
	Settings  Settings
	Timing    *Timing
}

// Settings are the settings of all sessions.
type Settings struct {
	// Agent is the configuration of agents. The session sets its RunID.
	Agent bytefrog.AgentConfiguration
	// TextKey is the attribute for the text of a method as the agent sent it.
	TextKey string
	// StartSuspended: agents trace only after an operator's unsuspend.
	StartSuspended bool
	// Silence is how long an agent may send no heartbeat.
	Silence time.Duration
	// SuspendAtOnce: a refused batch suspends the agent immediately. Otherwise MaxBlock is how long
	// the program may wait before that; 0: without a limit.
	SuspendAtOnce bool
	MaxBlock      time.Duration
	Batches       *receiverkit.BatchesConfig
	// Needs are the requirements on the settings of stack_pairing.
	Needs callevent.Needs
	// NameWait is how long events wait for their names.
	NameWait time.Duration
	// EndTimeout is how long the last data of a run may take to be delivered. ShutdownTimeout
	// bounds it too for a run whose memory is full.
	EndTimeout, ShutdownTimeout time.Duration
	// WarnEventsPerSecond is the call rate for a warning; 0: none.
	WarnEventsPerSecond int
	// MaxMessageSize bounds each string of a message, in bytes.
	MaxMessageSize int
	// MaxConnectionLead is how many sequence numbers below the events of a data connection may be
	// missing before the connection waits for the others.
	MaxConnectionLead int
}

// Timing has the times that the behaviour of agents requires.
type Timing struct {
	// Farewell is how long an agent has to answer the last suspend.
	Farewell time.Duration
	// Quiet is how long nothing arrives before all data counts as received.
	Quiet time.Duration
	// Complete is the same once as many numbers have arrived as the agent has assigned.
	Complete time.Duration
	// Drain bounds the reading of the rest, without the time in which the pipeline refuses. Discard
	// bounds it after the time of the shutdown.
	Drain, Discard time.Duration
	// Answer is how long an agent has to answer suspend. After that it may get unsuspend anyway.
	Answer time.Duration
	// Prepared is how long after its first data connection an agent counts as prepared for commands,
	// if it has sent neither a class report nor an event.
	Prepared time.Duration
	// Untraced is how long a run may trace no class before the log warns.
	Untraced time.Duration
}

// Options are the parts of one session.
type Options struct {
	// ID is the run's ID on the wire, and Stream the ID of its call stream.
	ID       uint8
	Stream   callevent.StreamID
	Resource pcommon.Resource
	// Version is the protocol version of the agent's hello on Control.
	Version uint8
	Control *connreader.Reader
	// Memory is closed at the end of the session.
	Memory  *runmemory.Memory
	Records Records
	// Started is called when the agent was started, and returns a function for the end of its
	// control connection.
	Started func() (disconnected func())
	// Linger gets the connections that the agent has not closed. Answered: it has answered suspend.
	Linger func(data []net.Conn, control net.Conn, answered bool)
	// Ended is called with the last state, before Over is closed.
	Ended func(last State)
}

// Records gets what an agent reports of itself and its program.
type Records interface {
	// Started reports that the agent was started.
	Started(version uint8, peer net.Addr)
	Mode(before, after bytefrog.Mode)
	Class(m bytefrog.ClassReport)
	Error(m bytefrog.ErrorMessage)
	Marker(m bytefrog.Marker, sequence uint64, at time.Time)
	// Ended reports why the run ends.
	Ended(e Ending)
}
