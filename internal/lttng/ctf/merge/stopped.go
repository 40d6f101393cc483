// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// resumesWithin bounds how far behind the begin of a packet word is looked for that
// tracing goes on: it comes as soon as the process's tracer finds a processor.
const resumesWithin = int64(50 * time.Millisecond)

// stopsTracing reports whether the packet that was read says that tracing was stopped.
// LTTng empties all buffers then, and writes packets for those that have nothing, too, as
// it does at no other time while tracing goes on: but for a stream's first packet, which a
// timer may end.
func (s *Stream) stopsTracing() bool {
	p := &s.reader.Packet
	return s.merger.options.Stops && s.read == 0 && s.timed(metadata.RolePacketEnd) && !s.follows() && (s.whole.any || p.Sequence > 0)
}

// addStopped makes marks of the loss at the end of a packet that said that tracing was
// stopped: now something follows.
func (s *Stream) addStopped() {
	if !s.stopped {
		return
	}
	s.stopped = false
	loss := &Loss{Stream: s, Cause: Stopped, From: s.promise, To: s.promise}
	s.marks = append(s.marks, mark{head: headLossBegin, time: s.promise, loss: loss}, mark{head: headLossEnd, time: s.promise, loss: loss})
}

// addStop makes marks of the loss that ends with word, in the packet that was begun, of
// a process that it is traced again. Nothing of the stream is older than before; the
// packet begins at begin.
func (s *Stream) addStop(before, begin int64) {
	resumes := s.merger.options.Resumes
	if resumes == nil || s.clock == nil || s.follows() || s.peekAt() != nil {
		return
	}
	defer s.peek.Finish()
	if before == math.MinInt64 {
		before = begin
	}
	var read, last uint64
	var to int64
	for s.peek.Next() {
		read++
		at := s.clock.UnixNano(s.peek.Event.Clock)
		if at-begin > resumesWithin {
			break
		}
		if resumes(&s.peek.Event) {
			last, to = read, at
		}
	}
	if last == 0 {
		return
	}
	loss := &Loss{Stream: s, Cause: Stopped, From: before, To: to}
	s.marks = append(s.marks, mark{head: headLossBegin, time: before, loss: loss}, mark{head: headLossEnd, time: to, after: last, loss: loss})
	slices.SortStableFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.after, b.after) })
}
