// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// silence bounds the silence between messages (RFC 37, "Heartbeating").
type silence struct {
	interval, timeout time.Duration
	asks              bool          // we send PING
	ttl               time.Duration // the other side announced to be gone after such a silence; 0: it did not
	limit             time.Time     // bytes must arrive until then; zero: no limit
}

// wait is a wait for any bytes.
type wait struct {
	began time.Time
	asked time.Time // when a PING was sent; zero: none was
}

// deadline returns the end of the wait; the zero time is no limit. At that time, ask means
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
