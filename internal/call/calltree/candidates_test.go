// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crowd is a store of a thousand services, with a clock and a sender of spans.
type crowd struct {
	*Store
	t     *testing.T
	clock *clock
	spans int
}

func newCrowd(t *testing.T) *crowd {
	set := settings()
	set.MaxServices = 1000
	c := newClock(&set)
	return &crowd{t: t, Store: NewStore(set), clock: c}
}

// send sends so many spans of a service together.
func (c *crowd) send(service string, spans int) {
	all := make([]Span, spans)
	for i := range all {
		c.spans++
		all[i] = callOf(c.spans, c.spans, -1, "f")
	}
	c.Fold(Origin{Service: service}, all)
}

// flood sends a span of each of so many names.
func (c *crowd) flood(name string, from, to int) {
	for i := range to - from {
		c.send(fmt.Sprint(name, from+i), 1)
	}
}

func (c *crowd) isShown(service string) bool {
	return slices.ContainsFunc(c.Services(), func(s Service) bool { return s.Name == service })
}

// Forged names have all places, and more of them arrive than there are places. Still a service is
// shown within a minute, and earlier services stay.
func TestForgedNamesDontHideServices(t *testing.T) {
	for name, test := range map[string]struct {
		// in is the number of seconds in which the service sends its 1,000 spans. burst is the number
		// of forged names in each of them.
		in, burst int
		// of is the number of spans of each name.
		of int
	}{
		"of one span":   {in: 20, burst: 5000, of: 1},
		"of five spans": {in: 20, burst: 2000, of: 5},
		"of one span, the service sends all in one second": {in: 1, burst: 100_000, of: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				test.burst /= 10
			}
			c := newCrowd(t)
			var before []string
			for i := range 20 {
				before = append(before, fmt.Sprint("before ", i))
			}
			for range 5 {
				for _, service := range before {
					c.send(service, 3)
				}
				c.clock.pass(10 * time.Second)
			}
			for i := range 1000 {
				c.send(fmt.Sprint("forged ", i), test.of)
			}
			require.False(t, c.isShown("new"))
			begin, number := c.clock.now, 0
			for range test.in {
				for range test.burst / 2 {
					c.send(fmt.Sprint("more ", number), test.of)
					number++
				}
				c.send("new", 1000/test.in)
				for range test.burst / 2 {
					c.send(fmt.Sprint("more ", number), test.of)
					number++
				}
				c.clock.pass(time.Second)
			}
			require.True(t, c.isShown("new"))
			assert.LessOrEqual(t, c.clock.now.Sub(begin), time.Minute)
			c.send("new", 7)
			assert.Contains(t, treeOf(t, c.Store, "new"), "f: ")
			for _, service := range before {
				assert.Contains(t, treeOf(t, c.Store, service), "f: 15 calls", service)
			}
			assert.LessOrEqual(t, len(c.Services()), 1001, "and the others")
			check(t, c.Store)
			calls := uint64(0)
			for _, service := range c.Services() {
				calls += service.Calls
			}
			assert.EqualValues(t, c.spans, calls, "no call is lost: it is at least among the others")
		})
	}
}

// Names that were sent for long can't keep their places: a service that sends for longer gets one.
func TestAServiceThatSendsForLongerReplacesAnEarlierOne(t *testing.T) {
	c := newCrowd(t)
	for range 10 {
		c.flood("forged ", 0, 1000)
		c.clock.pass(time.Second)
	}
	for range 10 {
		c.send("new", 5)
		c.clock.pass(time.Second)
		require.False(t, c.isShown("new"))
	}
	c.send("new", 5)
	c.clock.pass(time.Second)
	assert.True(t, c.isShown("new"))
	assert.EqualValues(t, 1, c.Counters().YieldedServices)
	check(t, c.Store)
}

// A service without a place is among the others, with its profiles and its counts.
func TestAReplacedServiceIsCountedAmongTheOthers(t *testing.T) {
	set := settings()
	set.MaxServices = 1
	clock := newClock(&set)
	s := NewStore(set)
	script(t, s, "weak/main a took 100", "weak/f! b < a took 40", "weak/late c < z took 7")
	s.FoldSamples(Origin{Service: "weak"}, Kind{"cpu", "ns"}, Sample{Frames: []Frame{{Function: "g", File: "g.rb", Line: 3}}, Count: 2, Value: 5})
	for i := range 3 {
		clock.pass(time.Second)
		script(t, s, fmt.Sprintf("strong/f %c took 1", 'd'+i))
	}
	check(t, s)
	assert.Nil(t, s.services.byName["weak"])
	got := treeOf(t, s, OtherServices)
	for _, line := range []string{"main: 1 calls, 0 errors, total 100, self 60", "main/f: 1 calls, 1 errors, total 40, self 40", "(parent not seen)/late: 1 calls, 0 errors, total 7, self 7"} {
		assert.Contains(t, got, line)
	}
	profile, ok := s.Snapshot(OtherServices, Kind{"cpu", "ns"})
	require.True(t, ok)
	assert.Equal(t, []Node{{Parent: -1, Function: "g", File: "g.rb", Line: 3, Calls: 2, Total: 5, Self: 5}}, profile.Nodes)
	assert.NotNil(t, s.services.byName["strong"])
}

// A service of which a window is being collected keeps its place.
func TestAServiceWithAnOpenWindowIsNotReplaced(t *testing.T) {
	set := settings()
	set.MaxServices = 1
	clock := newClock(&set)
	s := NewStore(set)
	script(t, s, "weak/f a took 1")
	tree, w, err := s.openWindow("weak", Calls)
	require.NoError(t, err)
	send := func(i int) {
		clock.pass(time.Second)
		script(t, s, fmt.Sprintf("strong/f %c took 1", 'b'+i))
	}
	for i := range 5 {
		send(i)
	}
	assert.Equal(t, "f: 1 calls, 0 errors, total 1, self 1", treeOf(t, s, "weak"))
	s.closeWindow(tree, w)
	send(5)
	send(6)
	assert.Nil(t, s.services.byName["weak"])
	check(t, s)
}

// A flood of names evicts no candidates that have shown more than each of them.
func TestWeakerNamesReplaceNoStrongerCandidates(t *testing.T) {
	var c candidates
	names := func() (all []string) {
		for _, one := range c.best(1) {
			all = append(all, one.name)
		}
		slices.Sort(all)
		return all
	}
	for i := range 5000 { // so many that all places are taken
		c.see(fmt.Sprint("strong ", i), 1, 1_000_000, 10)
	}
	strong := names()
	require.Len(t, strong, leastCandidates)
	for i := range 100_000 {
		c.see(fmt.Sprint("name ", i), 1, 1, 10)
	}
	assert.Equal(t, strong, names())
}

func TestCandidatesAreBounded(t *testing.T) {
	var c candidates
	for i := range 100_000 {
		c.see(fmt.Sprint("name ", i), 1, uint64(1+i%3), 10)
	}
	assert.LessOrEqual(t, len(c.best(1)), leastCandidates)
	texts := 0
	for _, one := range c.best(1) {
		texts += len(one.name)
	}
	assert.Equal(t, texts, c.texts)
	assert.Empty(t, c.best(2+candidatePatience), "those that are silent for long are none")
}
