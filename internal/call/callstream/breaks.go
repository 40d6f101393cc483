// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callstream

import "github.com/callbraid/callbraid/internal/call/callevent"

// breaks are the breaks in a call stream, by sequence number, and finally its end. Every batch
// carries the breaks that concern its events.
type breaks struct {
	// list contains the latest breaks: at most callevent.MaxBarriers, including the open one.
	list []callevent.Barrier
	// open is the sequence number at which the open interval began, and openCause its cause.
	open      uint64
	openCause callevent.Cause
	isOpen    bool
	// unsent is set until a batch contains the latest break.
	unsent bool
	// fresh is the number of breaks since the last batch.
	fresh int
}

// append appends a break that ends at the stream's next number.
func (b *breaks) append(barrier callevent.Barrier) {
	if n := len(b.list); n > 0 && b.list[n-1] == barrier {
		return
	}
	if len(b.list) >= callevent.MaxBarriers-1 {
		b.list = append(b.list[:0], b.list[1:]...)
	}
	b.list = append(b.list, barrier)
	b.unsent = true
	b.fresh++
}

// begin opens an interval at a sequence number, unless one is open.
func (b *breaks) begin(at uint64, cause callevent.Cause) {
	if !b.isOpen {
		b.isOpen, b.open, b.openCause, b.unsent = true, at, cause, true
		b.fresh++
	}
}

// finish closes the open interval, if there is one.
func (b *breaks) finish(at uint64) {
	if b.isOpen {
		b.isOpen = false
		b.append(callevent.Interval(b.open, at, b.openCause))
	}
}

// appendConcerning appends to dst the barriers of a batch, as package callevent describes them. The batch begins at number
// first. No break begins after it, because batches have the numbers of a stream in order. An open interval ends at next for
// now.
func (b *breaks) appendConcerning(dst []callevent.Barrier, first, next uint64) []callevent.Barrier {
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
