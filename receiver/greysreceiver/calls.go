// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"math"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// calls are sums of what monitors say of methods, cycle by cycle. Methods beyond a limit are
// one, other.
type calls struct {
	max     int
	methods map[methodName]*methodCalls
	other   methodCalls
	// folded counts rows of methods that had no room, and otherMonitor those of methods that
	// another monitor counts.
	folded, otherMonitor int64
	// bytes is what the methods take, about.
	bytes int
	// withheld are methods whose times are not said, since they may be false.
	withheld map[methodName]bool
}

type methodName struct{ class, method string }

// otherName is the function and the class of those that there is no room for. A class that is
// really called so is in quotes; functions have a dot.
const otherName = "other"

// methodCalls are the sums of a method, and its last cycle.
type methodCalls struct {
	// monitor is the number of the task that counts it, or noMonitor, and last the time of the
	// last row that was counted, by the server's clock.
	monitor int
	last    time.Time

	calls, failures int64
	// seconds is the time of all calls; untimed says that there were some without one.
	seconds float64
	untimed bool
	// cycle is the last row, and until is how long it is the last cycle's.
	cycle greys.MethodStatistics
	until time.Time
}

func newCalls(most int) calls {
	return calls{max: most, methods: map[methodName]*methodCalls{}, withheld: map[methodName]bool{}}
}

// count counts a row that a run gave. None is the same as another, whatever their times: in
// both protocols a monitor that is asked for counts from zero.
func (c *calls) count(r *run, row *greys.MethodStatistics, now time.Time) {
	m := c.of(r, row)
	if m == nil {
		return
	}
	m.last = row.Time
	m.calls, m.failures = sumOf(m.calls, row.Calls), sumOf(m.failures, row.Failed)
	m.seconds += row.Mean.Seconds() * float64(row.Calls)
	m.untimed = m.untimed || row.Calls > 0 && !row.HasMean
	m.cycle = *row
	m.cycle.Class, m.cycle.Method = "", "" // they are known, and may be long
	// A method that is idle may be in no further table.
	m.until = now.Add(2 * r.task.cycle)
}

// of are the calls of a row's method; nil: another monitor counts them.
func (c *calls) of(r *run, row *greys.MethodStatistics) *methodCalls {
	name := methodName{text(row.Class), text(row.Method)}
	m, known := c.methods[name]
	switch {
	case known && m.monitor == noMonitor && !m.overlaps(r, row):
		m.monitor = r.task.number
		return m
	case known && m.monitor != r.task.number:
		c.otherMonitor++
		return nil
	case known:
		return m
	case len(c.methods) >= c.max:
		c.folded++
		return &c.other
	default:
		m = &methodCalls{monitor: r.task.number}
		// The names may be parts of a longer text.
		c.bytes += bytesOfMethod + len(name.class) + len(name.method)
		c.methods[methodName{strings.Clone(name.class), strings.Clone(name.method)}] = m
		return m
	}
}

// clockTolerance is how much earlier than those before a row has to be for the server's
// clock to have been set back.
const clockTolerance = time.Minute

// noMonitor is the number of a monitor that was ended.
const noMonitor = -1

// release leaves the methods that a monitor has counted to others.
func (c *calls) release(monitor int) {
	for _, m := range c.methods {
		if m.monitor == monitor {
			m.monitor = noMonitor
		}
	}
}

// overlaps reports whether the cycle of a row began before the last row that was counted,
// which was of another monitor: calls of it were counted then.
func (m *methodCalls) overlaps(r *run, row *greys.MethodStatistics) bool {
	early := m.last.Sub(row.Time.Add(-r.task.cycle))
	return early > 0 && early < clockTolerance+r.task.cycle
}

// sumOf is the sum of two numbers that are not below zero, or the largest number.
func sumOf(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// methodState is what metrics say of a method.
type methodState struct {
	// function is the qualified name, class that of the class.
	function, class string
	calls, failures int64
	seconds         float64
	untimed         bool
	// cycle is the last one, where it is known.
	cycle    greys.MethodStatistics
	hasCycle bool
}

// states are those of all methods.
func (c *calls) states(now time.Time) []methodState {
	states := make([]methodState, 0, len(c.methods)+1)
	for name, m := range c.methods {
		s := methodState{
			function: name.class + "." + name.method, class: own(name.class), calls: m.calls, failures: m.failures, seconds: m.seconds, untimed: m.untimed,
			cycle: m.cycle, hasCycle: now.Before(m.until) && m.cycle.Calls > 0,
		}
		if c.withheld[name] {
			s.untimed, s.cycle.HasMean, s.cycle.HasRange = true, false, false
		}
		states = append(states, s)
	}
	if c.folded > 0 {
		states = append(states, methodState{function: otherName, class: otherName, calls: c.other.calls, failures: c.other.failures, seconds: c.other.seconds, untimed: c.other.untimed})
	}
	return states
}

// own is the text of a class that the server names. One that could be taken for otherName, or
// for one that was quoted, is quoted.
func own(name string) string {
	if strings.Trim(name, `"`) == otherName {
		return `"` + name + `"`
	}
	return name
}
