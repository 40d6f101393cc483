// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// State is the state of a session at a moment.
type State struct {
	ID     uint8
	Stream callevent.StreamID
	// Peer is the address of the agent, and Host is Peer without its port.
	Peer, Host string
	Version    uint8
	Resource   pcommon.Resource
	Opened     time.Time
	// LastHeard is when a heartbeat or data arrived last.
	LastHeard time.Time
	// Mode and SendBuffers are those of the last heartbeat.
	Mode        bytefrog.Mode
	SendBuffers int64
	Heartbeats  uint64
	Agent       hq.Status
	// Connections are the data connections that are read.
	Connections int64
	// Events are the received numbers. Next is one more than the highest, and Missing is how many below
	// it have not arrived.
	Events, Next uint64
	Missing      int64
	Bytes        uint64
	Breaks       [callevent.CauseCount]uint64
	// Proven: the agent has sent a heartbeat or opened a data connection.
	Proven bool
	// Leaving: the run ends. Over: it has ended.
	Leaving, Over bool
	// Calls are the calls that the pipeline has not returned from. Waiting are the connections that
	// wait for the pipeline. Holds: refused batches are in memory.
	Calls, Waiting int
	Holds          bool
}

// SumOfBreaks returns the number of breaks of all causes.
func (s *State) SumOfBreaks() (sum uint64) {
	for _, n := range s.Breaks {
		sum += n
	}
	return sum
}

// CurrentMode returns the mode of the agent. The receiver knows of a suspension before the next
// heartbeat: the last heartbeat may be older than the agent's answer to suspend.
func (s *State) CurrentMode() bytefrog.Mode {
	switch s.Mode {
	case bytefrog.ModeTracing, bytefrog.ModeInitializing, bytefrog.ModePaused:
		if s.Agent.Broken {
			return bytefrog.ModeSuspended
		}
	}
	return s.Mode
}
