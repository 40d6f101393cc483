// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// cycles pairs the events of garbage collections.
type cycles struct {
	open  cycle
	state cycleState
	// marking and whole are how long mark phases, and whole garbage collections, lasted.
	marking, whole histogram
	// noStart and noEnd count events whose others did not come, stepsBack those that are
	// earlier than what they end.
	noStart, noEnd, stepsBack int64
	// number is how many garbage collections have begun.
	number uint64
	// finished handles a complete garbage collection; nil: no pipeline takes spans.
	finished func(*cycle)
}

// cycle is a garbage collection, its times in Unix milliseconds.
type cycle struct {
	number             uint64
	start, marked, end int64
}

type cycleState uint8

const (
	cycleNone cycleState = iota
	cycleMarking
	cycleSweeping
)

// event handles the begin or the end of a phase.
func (c *cycles) event(millis int64, what rbkit.Kind) {
	switch {
	case what == rbkit.GCStart:
		c.dropOpen()
		c.number++
		c.open, c.state = cycle{number: c.number, start: millis}, cycleMarking
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

// dropOpen drops the open garbage collection, because events were missed or there are no
// more: the next end may belong to another one.
func (c *cycles) dropOpen() {
	if c.state != cycleNone {
		c.noEnd++
		c.state = cycleNone
	}
}

func (c *cycles) markingEnds(millis int64) {
	if millis < c.open.start {
		c.stepsBack++
		c.state = cycleNone
		return
	}
	c.open.marked, c.state = millis, cycleSweeping
	c.marking.observe(time.Duration(millis-c.open.start) * time.Millisecond)
}

func (c *cycles) sweepingEnds(millis int64) {
	c.state = cycleNone
	if millis < c.open.marked {
		c.stepsBack++
		return
	}
	c.open.end = millis
	c.whole.observe(time.Duration(millis-c.open.start) * time.Millisecond)
	if c.finished != nil {
		c.finished(&c.open)
	}
}
