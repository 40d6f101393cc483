// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// cycles pairs the events of garbage collections.
type cycles struct {
	open  Cycle
	state cycleState
	// marking and whole are durations of mark phases and of whole garbage collections.
	marking, whole Histogram
	// noStart and noEnd count events without their other event. stepsBack counts ends with a time
	// before their begin.
	noStart, noEnd, stepsBack int64
	// number is how many garbage collections have begun.
	number uint64
	// finished receives complete garbage collections; nil: no pipeline accepts spans.
	finished func(*Cycle)
}

// Cycle is a garbage collection with times in Unix milliseconds.
type Cycle struct {
	Number             uint64
	Start, Marked, End int64
}

type cycleState uint8

const (
	cycleNone cycleState = iota
	cycleMarking
	cycleSweeping
)

// handleEvent handles the begin or the end of a phase.
func (c *cycles) handleEvent(millis int64, what rbkit.Kind) {
	switch {
	case what == rbkit.GCStart:
		c.dropOpen()
		c.number++
		c.open, c.state = Cycle{Number: c.number, Start: millis}, cycleMarking
	case what == rbkit.GCEndMark && c.state == cycleMarking:
		c.markingEnds(millis)
	case what == rbkit.GCEndSweep && c.state == cycleSweeping:
		c.sweepingEnds(millis)
	default:
		c.noStart++
		if what == rbkit.GCEndSweep {
			// The end of marking is missing, so the open garbage collection has no end.
			c.state = cycleNone
		}
	}
}

// dropOpen drops the open garbage collection, because events were missed or no more follow. The
// next end may belong to another garbage collection.
func (c *cycles) dropOpen() {
	if c.state != cycleNone {
		c.noEnd++
		c.state = cycleNone
	}
}

func (c *cycles) markingEnds(millis int64) {
	if millis < c.open.Start {
		c.stepsBack++
		c.state = cycleNone
		return
	}
	c.open.Marked, c.state = millis, cycleSweeping
	c.marking.Observe(time.Duration(millis-c.open.Start) * time.Millisecond)
}

func (c *cycles) sweepingEnds(millis int64) {
	c.state = cycleNone
	if millis < c.open.Marked {
		c.stepsBack++
		return
	}
	c.open.End = millis
	c.whole.Observe(time.Duration(millis-c.open.Start) * time.Millisecond)
	if c.finished != nil {
		c.finished(&c.open)
	}
}
