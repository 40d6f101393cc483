// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// silence is how long nothing may come between messages (RFC 37, "Heartbeating").
type silence struct {
	interval, timeout time.Duration
	asks              bool          // we send PING
	ttl               time.Duration // after so long of silence the other side is gone, it said; 0: it didn't
	limit             time.Time     // something has to come until then; zero: never
}

// wait is a wait for whatever comes.
type wait struct {
	began time.Time
	asked time.Time // when a PING was sent; zero: none was
}

// deadline is until when to wait; the zero time is for ever. When it has passed ask says
// that a PING is due; otherwise the other side is gone.
func (s *silence) deadline(w wait) (deadline time.Time, ask bool) {
	deadline = s.limit
	if s.ttl > 0 {
		deadline = earlier(deadline, w.began.Add(s.ttl))
	}
	if !w.asked.IsZero() {
		return earlier(deadline, w.asked.Add(s.timeout)), false
	}
	if due := w.began.Add(s.interval); s.asks && earlier(deadline, due).Equal(due) {
		return due, true
	}
	return deadline, false
}

// earlier is the earlier of two times, of which the first may be zero: never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// patience is the deadline of a message that has begun: every progress bytes have to
// come within one time-out, however they are parted.
type patience struct {
	until time.Time // zero: it has not begun
	moves int64     // when so many bytes were received it moves on
}

func (p *patience) begin() { p.until = time.Time{} }

func (p *patience) due(received int64, timeout time.Duration) time.Time {
	if p.until.IsZero() || received >= p.moves {
		p.until = time.Now().Add(timeout)
		p.moves = received + progress
	}
	return p.until
}
