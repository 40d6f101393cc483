// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"time"
)

// Options describe the calls of a program. Shares are from 0 to 1.
type Options struct {
	Threads   int // 1 to 65,536. Default 4
	Depth     int // of the deepest call on a thread, at least 1. Default 20
	Functions int // at least 1. Default 1,000

	// Rate is the number of call events and markers per second; 0 is the maximum that the HQ reads.
	Rate float64
	// Events ends the program after that many call events and markers; the returns of open calls follow. 0: no end.
	Events uint64
	// Duration ends the program after that time. 0: no end.
	Duration time.Duration

	// Exceptions is the share of returns that are replaced by exceptions. Of these, one half ends several methods, one
	// quarter comes from untraced code, and one eighth is caught in the method that threw it.
	Exceptions float64
	// Markers is the share of numbers that are markers.
	Markers float64
	// Loss is the share of buffers that are dropped instead of sent. Buffers with names are never dropped.
	Loss float64
	// Suspends is the number of suspensions by the program's own user, spread over Events or else over Duration.
	Suspends int
	// ClockSteps is the number of steps of the agent's clock, alternately one hour forward and back, spread likewise.
	ClockSteps int

	Seed uint64
	// Record stores the data for Truth, about 100 bytes a call.
	Record bool
}

// Defaults of Options.
const (
	DefaultThreads   = 4
	DefaultDepth     = 20
	DefaultFunctions = 1000
)

const maxThreads = 1 << 16

func (o Options) withDefaults() Options {
	if o.Threads == 0 {
		o.Threads = DefaultThreads
	}
	if o.Depth == 0 {
		o.Depth = DefaultDepth
	}
	if o.Functions == 0 {
		o.Functions = DefaultFunctions
	}
	return o
}

// check returns an error for the first option that is out of range.
func (o Options) check() error {
	for _, share := range []struct {
		name  string
		value float64
	}{{"exceptions", o.Exceptions}, {"markers", o.Markers}, {"loss", o.Loss}} {
		if !(share.value >= 0 && share.value <= 1) {
			return fmt.Errorf("%s: expected a share from 0 to 1, got %v", share.name, share.value)
		}
	}
	switch {
	case o.Threads < 1 || o.Threads > maxThreads:
		return fmt.Errorf("threads: expected 1 to %d, got %d", maxThreads, o.Threads)
	case o.Depth < 1:
		return fmt.Errorf("depth: expected at least 1, got %d", o.Depth)
	case o.Functions < 1:
		return fmt.Errorf("functions: expected at least 1, got %d", o.Functions)
	case !(o.Rate >= 0):
		return fmt.Errorf("rate: expected 0 or more events a second, got %v", o.Rate)
	case o.Duration < 0:
		return fmt.Errorf("duration: expected 0 or more, got %v", o.Duration)
	case o.Markers == 1:
		return fmt.Errorf("markers: expected a share below 1, got %v", o.Markers)
	case o.Suspends < 0:
		return fmt.Errorf("suspends: expected 0 or more, got %d", o.Suspends)
	case o.Suspends > 0 && o.Events == 0 && o.Duration == 0:
		return fmt.Errorf("suspends: expected events or a duration to spread them over")
	case o.ClockSteps < 0:
		return fmt.Errorf("clock-steps: expected 0 or more, got %d", o.ClockSteps)
	case o.ClockSteps > 0 && o.Events == 0 && o.Duration == 0:
		return fmt.Errorf("clock-steps: expected events or a duration to spread them over")
	}
	return nil
}
