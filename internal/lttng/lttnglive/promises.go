// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"slices"
	"time"
)

// AddPromises adds to the steps of a stream of packets what a live session says when
// nothing comes: after each timer without a step, that the stream has nothing older
// than now. clock gives the trace's clock, in cycles, for a time of the recording. No
// promise reaches beyond the begin of the next packet, and none is added behind the
// stream's end or, where that is Never, the last step.
//
// Whoever makes recordings of files needs it: a viewer releases events when all
// streams have promised nothing older, and would otherwise wait for the next packet
// of the slowest.
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
