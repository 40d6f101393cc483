// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// profiler is the profiler of the program. It samples each call: its own time has the stack of the call. It keeps the
// stacks of the last start, also after its end.
type profiler struct {
	// started is the time of the last start; zero means never. until is when it stops by itself, and running is false
	// after a stop.
	started, until time.Time
	running        bool
	stacks         map[string]time.Duration
}

// isRunning reports whether the profiler runs. A timeout has stopped it.
func (p *profiler) isRunning(now time.Time) bool {
	if p.running && !p.until.IsZero() && !now.Before(p.until) {
		p.running = false
	}
	return p.running
}

// sample adds the own time of a call and of its callees.
func (p *profiler) sample(c Call, callers string) {
	frames := callers + strings.ReplaceAll(c.Class, ".", "/") + "." + c.Method + "_[j]"
	p.stacks[frames] += c.ownCost()
	for _, child := range c.Children {
		p.sample(child, frames+";")
	}
}

// text returns the stacks of the last start, as the profiler writes them.
func (p *profiler) text() string {
	text := strings.Builder{}
	for _, frames := range slices.Sorted(maps.Keys(p.stacks)) {
		if d := p.stacks[frames]; d > 0 {
			fmt.Fprintf(&text, "%s %d\n", frames, d.Nanoseconds())
		}
	}
	if text.Len() == 0 {
		return "\n"
	}
	return text.String()
}
