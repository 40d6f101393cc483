// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// records knows which of the recorded calls that a server lists, again and again, are new.
type records struct {
	// last is the highest index, and at the time of that record.
	last int64
	at   time.Time
	// repeated counts those that were not new.
	repeated int64
}

// isNew reports whether a recorded call was not listed before: its index is above all
// others, or it is later, since a server that was restarted begins to count anew.
func (r *records) isNew(of *greys.Record) bool {
	if of.Index <= r.last && !of.Time.After(r.at) {
		r.repeated++
		return false
	}
	r.last, r.at = of.Index, of.Time
	return true
}
