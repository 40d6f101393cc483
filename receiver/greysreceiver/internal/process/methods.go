// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"math"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/task"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/text"
)

// methods are the sums of monitors by method, cycle by cycle. Methods beyond the limit are
// counted together, as other.
type methods struct {
	max    int
	byName map[methodName]*methodSums
	other  methodSums
	// folded counts rows of methods beyond the limit, otherMonitor rows of methods that another
	// monitor counts.
	folded, otherMonitor int64
	// bytes is the memory of all methods, estimated.
	bytes int
}

type methodName struct{ class, method string }

// OtherName is the function and the class of the methods beyond the limit. A class of this name
// is in quotes; functions have a dot.
const OtherName = "other"

// bytesOfMethod is the memory of the sums of a method without its names, estimated.
const bytesOfMethod = 350

// methodSums are the sums of a method, and its last cycle.
type methodSums struct {
	// monitor is the number of the task that counts the method, or noMonitor.
	monitor int
	// last is the time of the last counted row, by the server's clock.
	last time.Time

	calls, failures int64
	// seconds is the time of all calls. untimed: some calls came without a time.
	seconds float64
	untimed bool
	// cycle is the last row. It is reported until the time until.
	cycle greys.MethodStatistics
	until time.Time
	// nesting decides whether the times are true; nil: nothing checks it.
	nesting *nesting
}

func newMethods(most int) methods {
	return methods{max: most, byName: map[methodName]*methodSums{}}
}

// nameOf is the name of a row's method, of bounded length.
func nameOf(row *greys.MethodStatistics) methodName {
	return methodName{text.Short(row.Class), text.Short(row.Method)}
}

// hasRoom reports whether a method has sums of its own, or can get them.
func (m *methods) hasRoom(name methodName) bool {
	return m.byName[name] != nil || len(m.byName) < m.max
}

// count adds a row of a monitor. No row comes twice, whatever its time: in both protocols a
// monitor begins at zero.
func (m *methods) count(t *task.Task, row *greys.MethodStatistics, n *nesting, now time.Time) {
	s := m.sumsFor(t, row)
	if s == nil {
		return
	}
	s.last = row.Time
	s.calls, s.failures = sumOf(s.calls, row.Calls), sumOf(s.failures, row.Failed)
	s.seconds += row.Mean.Seconds() * float64(row.Calls)
	s.untimed = s.untimed || row.Calls > 0 && !row.HasMean
	s.cycle = *row
	s.cycle.Class, s.cycle.Method = "", "" // the key has them, and they may be long
	// A method that is idle may be in no further table.
	s.until = now.Add(2 * t.Cycle)
	if s != &m.other {
		s.nesting = n
	}
}

// sumsFor returns the sums for a row; nil: another monitor counts the method.
func (m *methods) sumsFor(t *task.Task, row *greys.MethodStatistics) *methodSums {
	name := nameOf(row)
	s, known := m.byName[name]
	switch {
	case known && s.monitor == noMonitor && !s.overlaps(t, row):
		s.monitor = t.Number
		return s
	case known && s.monitor != t.Number:
		m.otherMonitor++
		return nil
	case known:
		return s
	case len(m.byName) >= m.max:
		m.folded++
		return &m.other
	default:
		s = &methodSums{monitor: t.Number}
		// The names may be parts of a longer text.
		m.bytes += bytesOfMethod + len(name.class) + len(name.method)
		m.byName[methodName{strings.Clone(name.class), strings.Clone(name.method)}] = s
		return s
	}
}

// noMonitor is the number of a monitor that has ended.
const noMonitor = -1

// release lets other monitors count the methods of one that has ended.
func (m *methods) release(monitor int) {
	for _, s := range m.byName {
		if s.monitor == monitor {
			s.monitor = noMonitor
		}
	}
}

// clockTolerance: a row that is earlier than the last one by more shows that the server's clock
// was set back.
const clockTolerance = time.Minute

// overlaps reports whether the cycle of a row began before the last row of another monitor, which
// has counted some of the same calls.
func (s *methodSums) overlaps(t *task.Task, row *greys.MethodStatistics) bool {
	early := s.last.Sub(row.Time.Add(-t.Cycle))
	return early > 0 && early < clockTolerance+t.Cycle
}

// sumOf adds two numbers of at least zero, up to the largest number.
func sumOf(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// MethodState is a method as metrics report it.
type MethodState struct {
	// Function is the qualified name of the method, Class that of its class.
	Function, Class string
	Calls, Failures int64
	Seconds         float64
	// Untimed: the times are unknown, or may be false.
	Untimed bool
	// Cycle is the last cycle, where HasCycle.
	Cycle    greys.MethodStatistics
	HasCycle bool
}

// states returns all methods.
func (m *methods) states(now time.Time) []MethodState {
	states := make([]MethodState, 0, len(m.byName)+1)
	for name, s := range m.byName {
		state := MethodState{
			Function: name.class + "." + name.method, Class: quoteOther(name.class), Calls: s.calls, Failures: s.failures, Seconds: s.seconds, Untimed: s.untimed,
			Cycle: s.cycle, HasCycle: now.Before(s.until) && s.cycle.Calls > 0,
		}
		if s.nesting != nil && s.nesting.times != timesTrue {
			state.Untimed, state.Cycle.HasMean, state.Cycle.HasRange = true, false, false
		}
		states = append(states, state)
	}
	if m.folded > 0 {
		states = append(states, MethodState{Function: OtherName, Class: OtherName, Calls: m.other.calls, Failures: m.other.failures, Seconds: m.other.seconds, Untimed: m.other.untimed})
	}
	return states
}

// quoteOther quotes the name of a class that could be taken for OtherName, or for a quoted one.
func quoteOther(name string) string {
	if strings.Trim(name, `"`) == OtherName {
		return `"` + name + `"`
	}
	return name
}
