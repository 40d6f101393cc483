// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Streams that were read before, and are not told on another connection. What they had is
// not known, nor until when they had something: but before the connection was made.

// reach is up to when packets of a trace have come, in the clock of a stream class.
type reach struct{ class, end uint64 }

// reached notes that a packet has come.
func (t *trace) reached(i *lttnglive.Index) {
	if i.TimestampEnd > t.reach.end {
		t.reach = reach{class: i.StreamClass, end: i.TimestampEnd}
	}
}

// compare finds, once all traces of the connection are known, what was read before and
// is there no longer.
func (a *attachment) compare() {
	if a.complete || len(a.order) == 0 {
		return
	}
	for _, src := range a.order {
		if src.trace == nil {
			return
		}
	}
	a.complete = true
	for _, t := range a.f.traces {
		for _, s := range t.streams {
			if s.present {
				continue
			}
			s.in.Lose(merge.Interrupted)
			if t.on == a {
				a.gone = append(a.gone, s)
			} else {
				s.in.End()
			}
		}
	}
}

// endGone ends streams that are gone, once all others have given what was recorded before
// the connection was made: so far calls are not paired. Nobody waits for them.
func (a *attachment) endGone() {
	a.gone = slices.DeleteFunc(a.gone, func(s *stream) bool {
		if slices.ContainsFunc(a.streams, func(other *stream) bool { return other.trace == s.trace && !other.current }) {
			s.in.PassBy(merge.Interrupted)
			return false
		}
		if at := s.trace.reach; at.end > 0 {
			s.in.Promise(at.class, at.end+1)
		}
		s.in.End()
		a.unread = true
		return true
	})
}
