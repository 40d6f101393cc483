// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/text"
)

var receivedAt = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// row returns a row of a monitor's table.
func row(at int, class, method string, calls, failed int64, mean time.Duration) *javamethods.MethodStatistics {
	return &javamethods.MethodStatistics{
		Time: time.Date(2026, 11, 20, 9, 12, at, 0, time.UTC), Class: class, Method: method,
		Calls: calls, Succeeded: calls - failed, Failed: failed, Mean: mean, HasMean: calls > 0,
	}
}

// A monitor starts at zero: no row of an earlier one arrives again, with any time of the server's clock.
func TestRowsOfAnyTimeAreCounted(t *testing.T) {
	m, monitor := newMethods(10), Monitor{}
	for _, at := range []int{59, 59, 5, 30, 59, 60, -3600} {
		m.count(monitor, row(at, "a", "b", 1, 0, 0), nil, receivedAt)
	}
	m.count(monitor, &javamethods.MethodStatistics{Class: "a", Method: "b", Calls: 1}, nil, receivedAt)
	assert.EqualValues(t, 8, m.byName[methodName{"a", "b"}].calls)
}

func TestTheLastCycleIsReportedForTwoCycles(t *testing.T) {
	m, monitor := newMethods(10), Monitor{Cycle: 10 * time.Second}
	m.count(monitor, row(1, "a", "b", 2, 1, ms(4)), nil, receivedAt)
	assert.True(t, m.states(receivedAt.Add(19 * time.Second))[0].HasCycle)
	assert.False(t, m.states(receivedAt.Add(20 * time.Second))[0].HasCycle)
	m.count(monitor, row(11, "a", "b", 0, 0, 0), nil, receivedAt)
	assert.False(t, m.states(receivedAt)[0].HasCycle, "there was no call")
	assert.EqualValues(t, 2, m.states(receivedAt)[0].Calls)
}

func TestSumsEndWithTheLargestNumber(t *testing.T) {
	m, monitor := newMethods(10), Monitor{}
	for at := range 3 {
		m.count(monitor, row(at, "a", "b", math.MaxInt64/2, 0, math.MaxInt64), nil, receivedAt)
	}
	assert.Equal(t, int64(math.MaxInt64), m.states(receivedAt)[0].Calls)
}

func TestTheSumOfACycleIsCountedExactly(t *testing.T) {
	m, monitor := newMethods(10), Monitor{}
	cycle := row(1, "a", "b", 3, 0, 3)
	cycle.Sum, cycle.HasSum = 10, true
	m.count(monitor, cycle, nil, receivedAt)
	assert.InDelta(t, 10e-9, m.states(receivedAt)[0].Seconds, 1e-15)
	cycle.DropTimes()
	m.count(monitor, cycle, nil, receivedAt)
	assert.True(t, m.states(receivedAt)[0].Untimed)
}

func TestRememberedNamesAreShort(t *testing.T) {
	m, long := newMethods(10), strings.Repeat("x", 1<<20)
	m.count(Monitor{}, row(1, long, long, 1, 0, 0), nil, receivedAt)
	for name, s := range m.byName {
		assert.Len(t, name.class+name.method, 2*text.MaxShort)
		assert.Empty(t, s.cycle.Class+s.cycle.Method)
	}
	n := newInventory(10)
	n.compare(List{Run: 1}, long, long, "")
	for _, e := range n.entries {
		assert.Len(t, e.name, text.MaxShort)
	}
}

// Long names must not need more memory than the same number of common names.
func TestTheNamesOfAnInventoryHaveATotalLimit(t *testing.T) {
	n := newInventory(100)
	list := func(run int64) {
		for i := range 100 {
			name := strings.Repeat(string(rune('a'+run)), 2*text.MaxShort)
			n.compare(List{Run: run}, name+strconv.Itoa(i), name, "")
		}
	}
	list(1)
	assert.Len(t, n.entries, 26)
	assert.EqualValues(t, 74, n.dropped)
	// There is room again after the removal.
	assert.Len(t, n.removeOthers(List{Run: 2}), 26)
	list(2)
	assert.Len(t, n.entries, 26)
	assert.EqualValues(t, 148, n.dropped)
}

func TestAClassOfTwoListsIsReportedOnceAndRemovedWithTheFirst(t *testing.T) {
	n := newInventory(10)
	enter := func(of int, run int64, name, content string) Change {
		return n.compare(List{of, run}, name, name, content)
	}
	assert.Equal(t, Found, enter(1, 1, "demo.Shop", "x"))
	assert.Equal(t, Unchanged, enter(2, 2, "demo.Shop", "y"), "another list differs")
	assert.Equal(t, Found, enter(2, 2, "demo.Pay", "x"))
	assert.Empty(t, n.removeOthers(List{2, 2}))
	assert.Equal(t, Unchanged, enter(1, 3, "demo.Shop", "x"))
	assert.Equal(t, Unchanged, enter(1, 3, "demo.Shop", "y"), "two with the same key")
	assert.Empty(t, n.removeOthers(List{1, 3}))
	assert.Equal(t, []string{"demo.Pay"}, n.removeOthers(List{2, 4}))
	assert.Equal(t, []string{"demo.Shop"}, n.removeOthers(List{1, 5}))
}

// recorded returns a recorded call.
func recorded(index int64, at int) *javamethods.Record {
	return &javamethods.Record{Index: index, Time: time.Date(2026, 11, 20, 9, 12, at, 0, time.UTC)}
}

// A server sends local times in whole seconds: they have no order, and are set back when summer time ends.
func TestRecordedCallsAreNewOnceInAnyOrder(t *testing.T) {
	for name, list := range map[string][]*javamethods.Record{
		"two threads":    {recorded(1001, 5), recorded(1002, 4)},
		"newest first":   {recorded(1003, 3), recorded(1002, 2), recorded(1001, 1)},
		"no order":       {recorded(1002, 9), recorded(1001, 1), recorded(1003, 1)},
		"clock set back": {recorded(1001, 3599), recorded(1002, 0), recorded(1003, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var r recordList
			seen := func(list []*javamethods.Record) (seen int) {
				for _, of := range list {
					if r.isNew(of) {
						seen++
					}
				}
				return seen
			}
			assert.Equal(t, len(list), seen(list))
			r.ended(true)
			for _, complete := range []bool{true, false, true} {
				assert.Zero(t, seen(list))
				r.ended(complete)
			}
			assert.Equal(t, 1, seen(append(list, recorded(1004, 0))))
			r.ended(true)
			// Another client deleted some: the server does not count from the beginning.
			assert.Zero(t, seen(list[:1]))
			r.ended(true)
			assert.Zero(t, seen(list))
			r.ended(true)
			// An incomplete list shows nothing, either.
			later := []*javamethods.Record{recorded(1, 7200)}
			assert.Zero(t, seen(later))
			r.ended(false)
			assert.Zero(t, seen(later))
		})
	}
}

// noCounters counts nothing.
type noCounters struct{}

func (noCounters) Process(_, _ *Counts) {}

// A server of a strange program can report any number of methods.
func TestTheNumberOfUnexpectedMethodsIsLimited(t *testing.T) {
	const limit, named = 2, 50
	p := New(Settings{MaxMethods: limit, RecursionCheck: 20, MaxCommands: 1, Counters: noCounters{}, Logger: zap.NewNop(), Now: time.Now})
	for second := range 3 {
		for i := range named {
			p.Rows(Monitor{Number: 1}, []javamethods.MethodStatistics{*row(second, fmt.Sprintf("Strange$%d", i), fmt.Sprint("method", second), 1, 0, time.Millisecond)}, true)
		}
	}
	assert.LessOrEqual(t, len(p.recursion.byName), limit+1)
	assert.Greater(t, p.recursion.bytes, len(p.recursion.byName)*bytesOfNesting)
	for i := range named {
		p.CheckDetail(&javamethods.RecordDetail{Record: javamethods.Record{Class: fmt.Sprint("Recorded", i), Method: "m"}})
	}
	assert.LessOrEqual(t, len(p.recursion.byName), limit+1)
}
