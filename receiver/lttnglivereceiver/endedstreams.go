// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import "container/list"

// endedStreams are streams of a session that are not read, but how far they were handed
// on is kept in the records of their traces, should they be told again. A relay daemon
// may tell of any number, one after the other: those that ended first are forgotten.
type endedStreams struct {
	most int
	// order has them as they ended, the first in front.
	order list.List
	at    map[endedStream]*list.Element
	// bytes is how many their keys have.
	bytes int
}

// endedStream is a stream of a trace.
type endedStream struct {
	trace *trace
	key   string
}

// add notes that a stream has ended, and forgets another one if they are too many.
func (e *endedStreams) add(s endedStream) {
	if at, ok := e.at[s]; ok {
		e.order.MoveToBack(at)
		return
	}
	e.at[s] = e.order.PushBack(s)
	e.bytes += len(s.key)
	if e.order.Len() > e.most {
		first := e.order.Front().Value.(endedStream)
		e.remove(first)
		delete(first.trace.record.Streams, first.key)
	}
}

func (e *endedStreams) remove(s endedStream) {
	if at, ok := e.at[s]; ok {
		e.order.Remove(at)
		delete(e.at, s)
		e.bytes -= len(s.key)
	}
}

// forget gives up a trace.
func (e *endedStreams) forget(t *trace) {
	for key := range t.record.Streams {
		e.remove(endedStream{t, key})
	}
}

// remember keeps how far a stream was handed on that is not read on.
func (t *trace) remember(s *stream) {
	if at := s.in.Position(); at.Known {
		t.record.Streams[s.key] = at
		t.follower.ended.add(endedStream{t, s.key})
	}
}
