// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"slices"
	"time"
)

// AddPromises adds the promises of a quiet stream of packets to its steps, as in a live session: after each timer
// without a step, a promise that the stream has nothing older than now. clock converts a time of the recording to
// cycles of the trace's clock. No promise exceeds the begin of the next packet. None is added after the stream's end,
// or after the last step if End is Never.
//
// Recordings of files need this: a viewer releases events only when no stream can have older ones, and would
// otherwise wait for the next packet of the slowest stream.
func (s *RecordedStream) AddPromises(timer time.Duration, clock func(time.Duration) uint64) {
	if timer <= 0 {
		return
	}
	var steps []Step
	promised := uint64(0)
	quiet := func(from, to time.Duration, next Index) {
		for at := from + timer; at < to && at > from; at += timer {
			promise := Index{Status: IndexInactive, StreamClass: next.StreamClass, TimestampEnd: clock(at)}
			if next.Status == IndexOK {
				promise.TimestampEnd = min(promise.TimestampEnd, next.TimestampBegin)
			}
			if promise.TimestampEnd <= promised {
				return // the next packet has begun
			}
			promised = promise.TimestampEnd
			steps = append(steps, Step{At: at, Index: promise})
		}
	}
	last, class := s.At, uint64(0)
	for _, step := range s.Steps {
		quiet(last, step.At, step.Index)
		steps = append(steps, step)
		last, class, promised = step.At, step.Index.StreamClass, max(promised, step.Index.TimestampEnd)
	}
	if s.End != Never {
		quiet(last, s.End, Index{StreamClass: class})
	}
	s.Steps = slices.Clip(steps)
}
