// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Outcome is the fate of the traced program.
type Outcome uint8

const (
	// Completed means that all data of the program were sent, and the connections were closed normally.
	Completed Outcome = iota
	// Untraced means that the program ran to its end without tracing for at least a part of it: tracing ended early, or
	// no HQ answered.
	Untraced
	// Hung means that the program waits forever.
	Hung
	// Refused means that the HQ refused the agent. The program runs untraced: the HQ started the agent with a
	// configuration that traces nothing, and then sent error or disconnected.
	Refused
	// Died means that the agent ended the program before its main function, because the HQ sent error or closed the
	// connection before start, or sent an invalid configuration.
	Died
	// Killed means that the context of Run ended, as if the program's process was killed.
	Killed
)

// String returns the outcome as one word.
func (o Outcome) String() string {
	switch o {
	case Completed:
		return "completed"
	case Untraced:
		return "untraced"
	case Hung:
		return "hung"
	case Refused:
		return "refused"
	case Died:
		return "died"
	case Killed:
		return "killed"
	default:
		return "unknown outcome"
	}
}

// Result is the result of a run.
type Result struct {
	Outcome Outcome
	// Reason is one sentence about the HQ or the network, without a full stop.
	Reason string
	// Err is an error of the Program, or the first one of a connection; nil if there was no error.
	Err error
	// Configuration is the HQ's configuration; the zero value if none arrived.
	Configuration bytefrog.AgentConfiguration
	Stats         Stats
}

// Stats counts the actions of an agent, from the start of its run.
type Stats struct {
	Events     uint64 // call events and markers written to data connections
	Bytes      uint64 // written to data connections
	Buffers    uint64 // written to data connections
	Heartbeats uint64 // written to the control connection
	Breaks     uint64 // data breaks written to the control connection
	Orders     uint64 // received control messages, including start
	// Waited is the time for which the program waited for a free buffer: back-pressure.
	Waited time.Duration
	// Mode is the mode of a heartbeat at the present.
	Mode bytefrog.Mode
}
