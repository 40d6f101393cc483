// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"container/list"

	"github.com/callbraid/callbraid/internal/lttng/position"
)

// endedStreams are the streams of a session that are not read. Their positions stay in the records of
// their traces, because the relay daemon may announce them again. It may announce any number, so the
// streams that ended first are forgotten.
type endedStreams struct {
	most int
	// order has the streams as they ended, the first in front.
	order list.List
	at    map[endedStream]*list.Element
	// bytes is the size of their keys.
	bytes int
}

// endedStream is a stream in the position of its trace.
type endedStream struct {
	in  *position.Trace
	key string
}

func newEndedStreams(most int) *endedStreams {
	return &endedStreams{most: most, at: map[endedStream]*list.Element{}}
}

// append adds a stream that has ended. If they are too many, it forgets the first.
func (e *endedStreams) append(s endedStream) {
	if at, ok := e.at[s]; ok {
		e.order.MoveToBack(at)
		return
	}
	e.at[s] = e.order.PushBack(s)
	e.bytes += len(s.key)
	if e.order.Len() > e.most {
		first := e.order.Front().Value.(endedStream)
		e.remove(first)
		delete(first.in.Streams, first.key)
	}
}

func (e *endedStreams) remove(s endedStream) {
	if at, ok := e.at[s]; ok {
		e.order.Remove(at)
		delete(e.at, s)
		e.bytes -= len(s.key)
	}
}

// forgetTrace removes the streams of a trace.
func (e *endedStreams) forgetTrace(t *position.Trace) {
	for key := range t.Streams {
		e.remove(endedStream{t, key})
	}
}

// endedStreamBytes is the approximate size of an ended stream in memory without its key.
const endedStreamBytes = 300

// size returns the approximate size of the ended streams in memory.
func (e *endedStreams) size() int { return endedStreamBytes*e.order.Len() + e.bytes }
