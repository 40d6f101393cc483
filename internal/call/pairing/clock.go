// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// beforeAll is earlier than every event.
const beforeAll = math.MinInt64 / 2

// tick makes last the time of the event, which is after those of all events
// before it, but where the clock jumped: rule 7.
func (s *Stream) tick(e *event, sequence uint64) {
	t := e.time + s.offset
	// A difference of times may not fit into 63 bits.
	behind := t < s.last && uint64(s.last-t) > uint64(s.settings.MaxClockJump)
	if behind || e.ahead && t-e.received() > s.settings.MaxClockJump {
		s.setClock(e, sequence)
	} else {
		s.last = max(t, s.last+1)
	}
}

// setClock ends all stacks because the clock jumped, and sets it anew: a time
// that is too far ahead becomes the time of receipt, and any other is taken as
// it is.
func (s *Stream) setClock(e *event, sequence uint64) {
	s.out.Counters.Breaks[callevent.CauseClock]++
	s.truncateBefore(sequence, callevent.CauseClock)
	s.offset = 0
	if e.ahead {
		s.offset = e.received() - e.time
	}
	s.last = e.time + s.offset
}
