// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// wants reports whether a stream is asked for what is next: others may wait for it, or
// it may be ahead of them.
func (a *attachment) wants(s *stream) bool {
	return !s.hungUp && s.in.Wanted() && (s.in.IsEmpty() || !a.f.buffers.isFull())
}

// makeRoom reports whether a packet of that size may be received now. What waits in all
// traces of the session is never more than the bound and one packet:
//
//  1. What fits is received, if need be after what is known to be next was handed on.
//  2. Beyond the bound one packet is received, of a stream that others wait for, or of a
//     trace that has nothing: so there is always something that goes on.
//  3. A stream that others wait for all the same is passed by: what waits in its trace
//     can't go on before. A trace that holds less than its share waits for others to
//     make room instead.
//
// It reports passed if the stream was passed by.
func (a *attachment) makeRoom(s *stream, size uint64) (there, passed bool, err error) {
	b, t := &a.f.buffers, s.trace
	if b.fits(size) {
		return true, false, nil
	}
	if a.unread {
		if err := a.work(); err != nil {
			return false, false, err
		}
	}
	if b.fits(size) || b.held <= b.most && (t.held == 0 || s.in.Awaited()) {
		return true, false, nil
	}
	passed = t.held >= b.held/len(a.f.traces) && s.in.PassBy(merge.NoRoom)
	a.unread = a.unread || passed
	return false, passed, nil
}

// hold notes that the trace holds so many bytes of packets more.
func (t *trace) hold(bytes int) {
	t.held += bytes
	t.follower.buffers.held += bytes
	if t.env.held != nil {
		t.env.held(&t.follower.buffers)
	}
}

// askFirst lets the next round begin with a stream that there was no room for, so that
// all of them have their turn.
func (a *attachment) askFirst(s *stream) {
	if at := slices.Index(a.streams, s); at > 0 {
		a.streams = slices.Concat(a.streams[at:], a.streams[:at])
	}
}
