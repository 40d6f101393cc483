// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// How a trace ends: stream by stream, with the processes after the last; for now, with
// what was handed on remembered; and where it is begun again.

// streamEnds is called when all of a stream that has ended was handed on. Without
// streams there are no processes.
func (t *trace) streamEnds(s *stream) {
	t.remember(s)
	delete(t.streams, s.key)
	t.numbered[s.in.ID] = nil
	t.free = append(t.free, s.in.ID)
	t.follower.counts.streams.Add(-1)
	t.env.telemetry.streams(-1)
	if len(t.streams) == 0 {
		t.endProcesses(t.ending)
	}
}

// endProcesses ends the call streams of all processes.
func (t *trace) endProcesses(cause callevent.Cause) {
	for _, p := range t.processes {
		p.end(cause)
	}
	if cause != callevent.CauseShutdown {
		for _, p := range t.processes {
			p.forgetObjects()
		}
		t.follower.follow(-len(t.processes))
		clear(t.processes)
		t.last = nil
	}
}

// endStreams ends all streams, so that nothing waits for them any longer.
func (t *trace) endStreams() {
	for _, s := range t.streams {
		s.in.End()
	}
}

// drop gives up reading the trace, until it comes again: what was handed on is known.
func (t *trace) drop(cause callevent.Cause) {
	if t.merger == nil {
		return
	}
	for _, s := range t.streams {
		t.remember(s)
	}
	if failed := t.merger.Failed(); failed != nil {
		t.passOver(t.numbered[failed.ID])
	}
	for _, p := range t.processes {
		p.breaks.finish(p.next)
		p.breaks.add(callevent.Point(p.next, cause))
		p.flush()
	}
	t.env.telemetry.brokeOff(cause)
	t.follower.counts.streams.Add(-int64(len(t.streams)))
	t.env.telemetry.streams(-int64(len(t.streams)))
	t.hold(-t.held)
	t.metadata, t.planned = 0, 0
	t.ctf, t.merger, t.plans, t.streams, t.numbered, t.free, t.losses = nil, nil, nil, nil, nil, nil, 0
}

// passOver remembers the packet of a stream that could not be read: the next try to
// read the trace leaves it out, or it would end there for ever.
func (t *trace) passOver(s *stream) {
	if len(s.given) > 0 && t.badCount < maxBad {
		t.badCount++
		t.bad[s.key] = append(t.bad[s.key], s.given[0].packetTimes)
		t.follower.saidLeftOut(s, s.given[0].packetTimes)
	}
}

// position is how far the trace was handed on.
func (t *trace) position() traceRecord {
	r := traceRecord{Streams: map[string]merge.Position{}}
	for key, at := range t.record.Streams {
		r.Streams[key] = at
	}
	for key, s := range t.streams {
		if at := s.in.Position(); at.Known {
			r.Streams[key] = at
		}
	}
	there := map[processKey]bool{}
	for key, p := range t.processes {
		there[key] = true
		record := processRecord{Namespace: key.namespace, PID: key.pid, Begun: p.begun, Next: p.next, Program: p.program}
		if p.addresses.listed {
			record.Objects = slices.Clone(p.addresses.told)
		}
		r.Processes = append(r.Processes, record)
	}
	for _, p := range t.record.Processes {
		if !there[processKey{p.Namespace, p.PID}] {
			r.Processes = append(r.Processes, p)
		}
	}
	return r
}
