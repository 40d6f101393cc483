// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// breaks are the breaks of a run, and its end. They are for many goroutines.
type breaks struct {
	stream    *stream.Stream
	telemetry *telemetry.Telemetry
	// added is called after a new break.
	added  func()
	counts [callevent.CauseCount]atomic.Uint64
	// owed is a break of which only the beginning is known: one more than its first number; 0: none.
	// It ends with the first number that is received afterwards.
	owed atomic.Uint64
}

// add adds a break, or the end, unless it is known.
func (b *breaks) add(barrier callevent.Barrier) {
	dropped, known := b.stream.AddBarrier(barrier)
	b.telemetry.BarriersDropped(int64(dropped))
	if known || barrier.Kind == callevent.BarrierEnd {
		return
	}
	b.counts[barrier.Cause].Add(1)
	b.telemetry.BrokeOff(barrier.Cause)
	b.added()
}

// addHere adds a break after all received numbers.
func (b *breaks) addHere(cause callevent.Cause) { b.add(callevent.Point(b.stream.Next(), cause)) }

// owe begins a break with the next number.
func (b *breaks) owe() { b.owed.Store(b.stream.Next() + 1) }

// settle ends the owed break at a number, unless the number is before it.
func (b *breaks) settle(sequence uint64) {
	from := b.owed.Load()
	if from == 0 || sequence < from-1 || !b.owed.CompareAndSwap(from, 0) {
		return
	}
	b.add(callevent.Interval(from-1, sequence, callevent.CauseSuspended))
}

// settleBefore ends the owed break before events are packed.
func (b *breaks) settleBefore(events []bytefrog.Event) {
	from := b.owed.Load()
	if from == 0 {
		return
	}
	reference := b.stream.Next()
	first, any := uint64(0), false
	for _, e := range events {
		if n := bytefrog.Unwrap(reference, e.Sequence); n >= from-1 && (!any || n < first) {
			first, any = n, true
		}
	}
	if any {
		b.settle(first)
	}
}
