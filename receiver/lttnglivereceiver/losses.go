// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// lossBegins begins an interval in which events are missing, in all call streams:
// threads move between CPUs, so what one stream of packets misses any of them may.
func (t *trace) lossBegins(l *merge.Loss) {
	t.losses++
	cause := breakCause(l.Cause)
	if t.losses == 1 {
		t.lossCause = cause
		for _, p := range t.processes {
			p.breaks.begin(p.next, cause)
		}
		t.env.telemetry.brokeOff(cause)
	}
	s := t.numbered[l.Stream.ID]
	switch l.Cause {
	case merge.LostPackets:
		t.follower.counts.packetsLost.Add(int64(l.Count))
		t.env.telemetry.packetsLost(int64(l.Count))
		if s.isRewound() {
			t.env.telemetry.cleared()
			t.follower.saidCleared(t, s, l.Count)
		}
	case merge.Overtaken:
		t.follower.saidOvertaken(s)
	case merge.NoRoom:
		t.follower.saidNoRoom(s)
	}
}

// lossEnds ends it.
func (t *trace) lossEnds(l *merge.Loss) {
	if l.Cause == merge.Discarded {
		t.follower.counts.discarded.Add(int64(l.Count))
		t.env.telemetry.discarded(int64(l.Count))
	}
	if t.losses--; t.losses > 0 {
		return
	}
	for _, p := range t.processes {
		p.breaks.finish(p.next)
		if p.breaks.fresh >= maxFresh {
			p.flush()
		}
	}
}

// breakCause is the cause of a break for that of a loss.
func breakCause(c merge.Cause) callevent.Cause {
	switch c {
	case merge.Overtaken, merge.Disordered:
		return callevent.CauseUnresponsive
	case merge.Interrupted:
		return callevent.CauseDisconnected
	case merge.Stopped:
		return callevent.CauseSuspended
	case merge.NoRoom:
		return callevent.CauseLimit
	default:
		return callevent.CauseDiscarded
	}
}
