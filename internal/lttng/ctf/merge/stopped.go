// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// resumesWithin is the maximum time from the begin of a packet to an event that reports that tracing resumes. A
// process records this event as soon as its tracer gets a processor.
const resumesWithin = int64(50 * time.Millisecond)

// stopsTracing reports whether the finished packet means that tracing stopped. LTTng then empties all buffers and
// also writes packets for empty ones. While tracing runs, it writes empty packets only as the first packet of a
// stream, when a timer ends that.
func (s *Stream) stopsTracing() bool {
	p := &s.reader.Packet
	return s.merger.options.Stops && s.read == 0 && s.timed(metadata.RolePacketEnd) && !s.follows() && (s.finished.any || p.Sequence > 0)
}

// addStopped adds marks for the loss at the end of a packet that meant that tracing stopped. It is called when the
// stream continues.
func (s *Stream) addStopped() {
	if !s.stopped {
		return
	}
	s.stopped = false
	loss := &Loss{Stream: s, Cause: Stopped, From: s.promise, To: s.promise}
	s.marks = append(s.marks, mark{head: headLossBegin, time: s.promise, loss: loss}, mark{head: headLossEnd, time: s.promise, loss: loss})
}

// addStop adds marks for a loss that ends with an event of the open packet, in which a process reports that tracing
// resumes. The promise of the stream was before. The packet begins at begin.
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
	s.sortMarks()
}
