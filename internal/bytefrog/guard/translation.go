// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/binary"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Where call events and markers carry their time and number, and thread names their time.
const (
	timeOffset       = 1
	sequenceOffset   = 5
	threadTimeOffset = 3
)

// translation makes the numbers and times that an agent counts those of a run that began
// later: for a new collector a run begins at 0, and its clock when it says start. The zero
// value is that of a run which began with the agent's.
type translation struct {
	// since is the agent's number that is the run's 0; what is before is not for the run.
	since uint64
	// ticks is the agent's time, in milliseconds, that is the run's 0.
	ticks uint64
	// needed says that the run did not begin with the agent's.
	needed bool
}

// number gives a number of the agent's as the run counts; 0 for those before the run.
func (t translation) number(n uint64) uint32 {
	if n < t.since {
		return 0
	}
	return uint32(n - t.since)
}

// time gives a time of the agent's as the run counts, which may be before its begin.
func (t translation) time(ms uint32) uint32 { return ms - uint32(t.ticks) }

// translateName makes a message that gives a name the run's.
func translateName(m []byte, t translation) {
	if bytefrog.MessageType(m[0]) == bytefrog.TypeMapThreadName {
		binary.BigEndian.PutUint32(m[threadTimeOffset:], t.time(binary.BigEndian.Uint32(m[threadTimeOffset:])))
	}
}
