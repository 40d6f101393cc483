// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"math"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/text"
)

// methods sum the rows of monitors by method. Methods beyond the limit share one sum, called other.
type methods struct {
	max    int
	byName map[methodName]*methodSums
	other  methodSums
	// folded counts rows of methods beyond the limit. otherMonitor counts rows of methods that another monitor counts.
	folded, otherMonitor int64
	// bytes is the estimated memory of all methods.
	bytes int
}

type methodName struct{ class, method string }

// OtherName is the function and the class name of the methods beyond the limit. A class with this name is reported in
// quotes; function names have a dot.
const OtherName = "other"

// bytesOfMethod is the estimated memory of a method's sums without its names.
const bytesOfMethod = 350

// methodSums are the sums of a method, and its last cycle.
type methodSums struct {
	// monitor is the number of the task that counts the method, or noMonitor.
	monitor int
	// last is the time of the last counted row, by the server's clock.
	last time.Time

	calls, failures int64
	// seconds is the total time of all calls. untimed means that some calls arrived without a time.
	seconds float64
	untimed bool
	// cycle is the last row. It is reported until the time in until.
	cycle javamethods.MethodStatistics
	until time.Time
	// nesting decides whether the times are true; nil means that they are not checked.
	nesting *nesting
}

func newMethods(most int) methods {
	return methods{max: most, byName: map[methodName]*methodSums{}}
}

// nameOf returns the name of a row's method, with a limited length.
func nameOf(row *javamethods.MethodStatistics) methodName {
	return methodName{text.Short(row.Class), text.Short(row.Method)}
}

// hasRoom reports whether a method has sums of its own, or can have them.
func (m *methods) hasRoom(name methodName) bool {
	return m.byName[name] != nil || len(m.byName) < m.max
}

// count adds a row of a monitor. No row arrives twice, with any time: in both protocols a monitor starts at zero.
func (m *methods) count(by Monitor, row *javamethods.MethodStatistics, n *nesting, now time.Time) {
	s := m.sumsFor(by, row)
	if s == nil {
		return
	}
	s.last = row.Time
	s.calls, s.failures = sumOf(s.calls, row.Calls), sumOf(s.failures, row.Failed)
	seconds, known := row.Total()
	s.seconds += seconds
	s.untimed = s.untimed || !known
	s.cycle = *row
	s.cycle.Class, s.cycle.Method = "", "" // the map key has them, and they can be long
	// An idle method may be missing in later tables.
	s.until = now.Add(2 * by.Cycle)
	if s != &m.other {
		s.nesting = n
	}
}

// sumsFor returns the sums for a row; nil means that another monitor counts the method.
func (m *methods) sumsFor(by Monitor, row *javamethods.MethodStatistics) *methodSums {
	name := nameOf(row)
	s, known := m.byName[name]
	switch {
	case known && s.monitor == noMonitor && !s.overlaps(by, row):
		s.monitor = by.Number
		return s
	case known && s.monitor != by.Number:
		m.otherMonitor++
		return nil
	case known:
		return s
	case len(m.byName) >= m.max:
		m.folded++
		return &m.other
	default:
		s = &methodSums{monitor: by.Number}
		// The names may be parts of a longer text.
		m.bytes += bytesOfMethod + len(name.class) + len(name.method)
		m.byName[methodName{strings.Clone(name.class), strings.Clone(name.method)}] = s
		return s
	}
}

// noMonitor is the number of an ended monitor.
const noMonitor = -1

// release lets other monitors count the methods of an ended monitor.
func (m *methods) release(monitor int) {
	for _, s := range m.byName {
		if s.monitor == monitor {
			s.monitor = noMonitor
		}
	}
}

// clockTolerance limits how much earlier than the last row a row may be. A larger difference shows that the server's
// clock was set back.
const clockTolerance = time.Minute

// overlaps reports whether the cycle of a row began before the last row of another monitor. That monitor has then
// counted some of the same calls.
func (s *methodSums) overlaps(by Monitor, row *javamethods.MethodStatistics) bool {
	early := s.last.Sub(row.Time.Add(-by.Cycle))
	return early > 0 && early < clockTolerance+by.Cycle
}

// sumOf adds two non-negative numbers, up to the largest number.
func sumOf(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// MethodState is a method in the form of metrics.
type MethodState struct {
	// Function is the qualified name of the method. Class is the name of its class.
	Function, Class string
	Calls, Failures int64
	Seconds         float64
	// Untimed means that the times are unknown, or may be false.
	Untimed bool
	// Cycle is the last cycle, valid if HasCycle.
	Cycle    javamethods.MethodStatistics
	HasCycle bool
}

// states returns the states of all methods.
func (m *methods) states(now time.Time) []MethodState {
	states := make([]MethodState, 0, len(m.byName)+1)
	for name, s := range m.byName {
		state := MethodState{
			Function: name.class + "." + name.method, Class: quoteOther(name.class), Calls: s.calls, Failures: s.failures, Seconds: s.seconds, Untimed: s.untimed,
			Cycle: s.cycle, HasCycle: now.Before(s.until) && s.cycle.Calls > 0,
		}
		if s.nesting != nil && s.nesting.times != timesTrue {
			state.Untimed = true
			state.Cycle.DropTimes()
		}
		states = append(states, state)
	}
	if m.folded > 0 {
		states = append(states, MethodState{Function: OtherName, Class: OtherName, Calls: m.other.calls, Failures: m.other.failures, Seconds: m.other.seconds, Untimed: m.other.untimed})
	}
	return states
}

// quoteOther quotes a class name that looks like OtherName or like a quoted OtherName.
func quoteOther(name string) string {
	if strings.Trim(name, `"`) == OtherName {
		return `"` + name + `"`
	}
	return name
}
