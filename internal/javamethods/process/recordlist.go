// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// recordList finds the new calls in the server's repeated lists of recorded calls. It compares their indexes, which the
// server counts. It cannot compare times: they are local times in whole seconds, in no order.
type recordList struct {
	// last and lastTime are the highest index and the latest time of all complete and incomplete lists so far. highest
	// and latest are those of the current list.
	last, highest    int64
	lastTime, latest time.Time
	// repeated counts calls that were not new.
	repeated int64
}

// isNew reports whether a recorded call was in no earlier list. A list may have any order.
func (r *recordList) isNew(of *javamethods.Record) bool {
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

// ended handles the end of a list. If a complete list has only lower indexes and a later time than all before, the
// server counts from the beginning again: all calls are new in the next list.
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
