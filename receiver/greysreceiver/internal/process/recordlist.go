// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// recordList finds the new ones of the recorded calls that a server lists again and again. It
// compares their indexes, which the server counts. Their times are local ones in whole seconds, in
// no order.
type recordList struct {
	// last and lastTime are the highest index and the latest time of all lists that have ended,
	// highest and latest those of the current list.
	last, highest    int64
	lastTime, latest time.Time
	// repeated counts calls that were not new.
	repeated int64
}

// isNew reports whether no earlier list had a recorded call. A list may have any order.
func (r *recordList) isNew(of *greys.Record) bool {
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

// ended closes a list. A complete one with lower indexes and later times than all before is of a
// server that counts from the beginning: all of it is new in the next list.
func (r *recordList) ended(complete bool) {
	if complete && r.highest < r.last && r.latest.After(r.lastTime) {
		r.last, r.lastTime = 0, r.latest
	} else {
		r.last = max(r.last, r.highest)
		if r.latest.After(r.lastTime) {
			r.lastTime = r.latest
		}
	}
	r.highest, r.latest = 0, time.Time{}
}
