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
	// Completed: all that the program made was sent, and the connections were closed
	// in order.
	Completed Outcome = iota
	// Untraced: the program ran to its end, but tracing was over before that, or
	// never began because nobody answered.
	Untraced
	// Hung: the program waits forever.
	Hung
	// Refused: the HQ turned the agent away. The program runs untraced: the HQ has
	// started the agent to trace nothing, and then told it error, or left.
	Refused
	// Died: the agent ended the program before its main, because the HQ sent error or
	// closed the connection before start, or sent a configuration that can't be.
	Died
	// Killed: the context of Run ended, as if the program's process was killed.
	Killed
)

// String returns the outcome in one word.
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

// Result is how a run of an agent ended.
type Result struct {
	Outcome Outcome
	// Reason is one sentence without a full stop about the HQ or the network.
	Reason string
	// Err is an error of the Program, or the first one of a connection; nil where the
	// reason is no error.
	Err error
	// Configuration was sent by the HQ; the zero value if none arrived.
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
	Orders     uint64 // control messages obeyed, start among them
	// Waited is the time the program waited for a free buffer: back-pressure.
	Waited time.Duration
	// Mode is the mode of a heartbeat at this time.
	Mode bytefrog.Mode
}
