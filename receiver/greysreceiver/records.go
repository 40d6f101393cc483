// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

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
