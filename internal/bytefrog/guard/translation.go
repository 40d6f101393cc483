// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/binary"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Positions of time and number in call events and markers, and of the time in thread names.
const (
	timeOffset       = 1
	sequenceOffset   = 5
	threadTimeOffset = 3
)

// translation converts the numbers and times of an agent to those of a run that began later. For a new collector a run
// begins at 0, and its clock when it sends start. The zero value is for a run that began with the agent.
type translation struct {
	// since is the agent's number that is the run's 0. Earlier numbers do not belong to the run.
	since uint64
	// ticks is the agent's time, in milliseconds, that is the run's 0.
	ticks uint64
	// needed: the run began later than the agent.
	needed bool
}

// number converts a number of the agent; 0: it is before the run.
func (t translation) number(n uint64) uint32 {
	if n < t.since {
		return 0
	}
	return uint32(n - t.since)
}

// time converts a time of the agent. It may be before the run.
func (t translation) time(ms uint32) uint32 { return ms - uint32(t.ticks) }

// translateName converts the time of a thread's name.
func translateName(m []byte, t translation) {
	if bytefrog.MessageType(m[0]) == bytefrog.TypeMapThreadName {
		binary.BigEndian.PutUint32(m[threadTimeOffset:], t.time(binary.BigEndian.Uint32(m[threadTimeOffset:])))
	}
}
