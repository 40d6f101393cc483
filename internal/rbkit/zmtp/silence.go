// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// silence bounds the silence between messages (RFC 37, "Heartbeating").
type silence struct {
	interval, timeout time.Duration
	asks              bool          // we send PING
	ttl               time.Duration // the other side is gone after such a silence, as it announced; 0: it announced nothing
	limit             time.Time     // bytes must arrive until then; zero: no limit
}

// wait is a wait for any bytes.
type wait struct {
	began time.Time
	asked time.Time // when a PING was sent; zero: none was
}

// deadline returns the end of the wait; the zero time is no limit. If ask is true, a PING is due
// at that time. Otherwise the other side is gone.
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

// earlier returns the earlier of two times. The first may be zero, which is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// patience is the deadline of a message that has begun: progress bytes have to arrive within each
// time-out, in any pieces.
type patience struct {
	until time.Time // zero: the message has not begun
	moves int64     // the number of received bytes after which the deadline moves on
}

func (p *patience) begin() { p.until = time.Time{} }

func (p *patience) deadline(received int64, timeout time.Duration) time.Time {
	if p.until.IsZero() || received >= p.moves {
		p.until = time.Now().Add(timeout)
		p.moves = received + progress
	}
	return p.until
}
