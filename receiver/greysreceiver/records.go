// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys"
)

// records knows which of the recorded calls that a server lists, again and again, are new.
// Their indexes say so, since the server counts them; not their times, which are local ones
// in whole seconds, and in no order.
type records struct {
	// last and at are the highest index and the latest time of lists that have ended, highest
	// and latest those of the list that is read.
	last, highest int64
	at, latest    time.Time
	// repeated counts those that were not new.
	repeated int64
}

// isNew reports whether a recorded call of a list was in none before. Lists may be in any
// order.
func (r *records) isNew(of *greys.Record) bool {
	r.highest = max(r.highest, of.Index)
	if of.Time.After(r.latest) {
		r.latest = of.Time
	}
	if of.Index <= r.last {
		r.repeated++
		return false
	}
	return true
}

// listed is told that a list has ended, and whether it was whole. One that is, ends below
// those before, and has later calls than they had, is of a server that counts anew: all of it
// is new when it is listed next.
func (r *records) listed(whole bool) {
	if whole && r.highest < r.last && r.latest.After(r.at) {
		r.last, r.at = 0, r.latest
	} else {
		r.last = max(r.last, r.highest)
		if r.latest.After(r.at) {
			r.at = r.latest
		}
	}
	r.highest, r.latest = 0, time.Time{}
}

// elsewhere is how far the time of a call that was recorded just now is from now, at least,
// where it is of another time zone: these differ by quarters of an hour, and clocks by less.
const elsewhere = 10 * time.Minute

// compareClocks is told when a call ended by the server's clock, just now. It is for any
// goroutine.
func (s *server) compareClocks(ended time.Time) {
	now := s.env.now()
	ahead := ended.Sub(now)
	if ahead.Abs() < elsewhere || ended.Unix() <= 0 {
		s.elsewhere.Over()
		return
	}
	if since, say := s.elsewhere.Say(now); say {
		s.logger.Warn("Calls that were recorded just now ended at another time: set timezone to that of the program, or its clock",
			zap.Duration("ahead", ahead.Round(time.Second)), zap.String("timezone", s.env.config.Timezone), zap.Int("times_since_last_line", since))
	}
}
