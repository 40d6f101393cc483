// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import "github.com/callbraid/callbraid/internal/call/callevent"

// breaks are the breaks in the call events of one process, by their numbers, and at
// last its end. Every batch carries those that concern its events.
type breaks struct {
	// list are the latest, at most callevent.MaxBarriers with the open one.
	list []callevent.Barrier
	// open is the number at which an interval began that has not ended, and its cause.
	open      uint64
	openCause callevent.Cause
	isOpen    bool
	// news says that one of them has been in no batch yet.
	news bool
	// fresh is how many were added since the last batch.
	fresh int
}

// add adds a break that ends at the highest number there is.
func (b *breaks) add(barrier callevent.Barrier) {
	if n := len(b.list); n > 0 && b.list[n-1] == barrier {
		return
	}
	if len(b.list) >= callevent.MaxBarriers-1 {
		b.list = append(b.list[:0], b.list[1:]...)
	}
	b.list = append(b.list, barrier)
	b.news = true
	b.fresh++
}

// begin begins an interval at a number, unless one is open.
func (b *breaks) begin(at uint64, cause callevent.Cause) {
	if !b.isOpen {
		b.isOpen, b.open, b.openCause, b.news = true, at, cause, true
		b.fresh++
	}
}

// finish ends the interval that is open.
func (b *breaks) finish(at uint64) {
	if b.isOpen {
		b.isOpen = false
		b.add(callevent.Interval(b.open, at, b.openCause))
	}
}

// concerning appends to dst the breaks that reach into or beyond the numbers from
// first on, and the last one before; an interval that is open reaches to next, as far as
// is known.
func (b *breaks) concerning(dst []callevent.Barrier, first, next uint64) []callevent.Barrier {
	before := -1
	for i := range b.list {
		if b.list[i].To <= first {
			before = i
			continue
		}
		if before >= 0 {
			dst, before = append(dst, b.list[before]), -1
		}
		dst = append(dst, b.list[i])
	}
	if before >= 0 {
		dst = append(dst, b.list[before])
	}
	if b.isOpen {
		dst = append(dst, callevent.Interval(b.open, max(b.open, next), b.openCause))
	}
	return dst
}
