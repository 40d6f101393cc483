// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// candidates are services without a place of their own, with what they have shown: a sketch,
// which a flood of names that come once doesn't make forget those that come again. Names are
// in buckets by their hash. Where a bucket is full, each newcomer takes from what the one has
// shown that has shown least, and takes its place when nothing is left.
type candidates struct {
	buckets []candidateBucket
	seed    maphash.Seed
	// texts is what the names take, in bytes.
	texts int
	// seen: one came since they were looked through last.
	seen bool
}

type candidateBucket [8]candidate

type candidate struct {
	name string
	// shown is empty where there is none.
	shown evidence
}

const (
	// candidatesOfService is how many candidates there are for each service.
	candidatesOfService = 4
	leastCandidates     = 1024
	// candidatePatience is for how many seconds of silence one keeps its place.
	candidatePatience = 60
)

// see sees a name of which so many spans or samples came in a second. There are so many
// services.
func (c *candidates) see(name string, second uint32, items uint64, services int) {
	if c.buckets == nil {
		number := max(leastCandidates, candidatesOfService*services) / len(candidateBucket{})
		c.buckets, c.seed = make([]candidateBucket, 1<<bits.Len(uint(number-1))), maphash.MakeSeed()
	}
	c.seen = true
	b := &c.buckets[maphash.String(c.seed, name)&uint64(len(c.buckets)-1)]
	least := &b[0]
	for i := range b {
		at := &b[i]
		if at.shown.seconds > 0 && at.name == name {
			at.shown.add(second, items)
			return
		}
		if at.shown.seconds > 0 && second-at.shown.last > candidatePatience {
			c.drop(at)
		}
		if at.shown.compare(&least.shown) < 0 {
			least = at
		}
	}
	if least.shown.items > items {
		least.shown.items -= items
		return
	}
	c.drop(least)
	least.name = strings.Clone(name)
	least.shown.add(second, items)
	c.texts += len(name)
}

func (c *candidates) drop(one *candidate) {
	c.texts -= len(one.name)
	*one = candidate{}
}

// best are those of which something came not long ago, those first that have shown most.
func (c *candidates) best(second uint32) (all []*candidate) {
	for i := range c.buckets {
		for j := range c.buckets[i] {
			if one := &c.buckets[i][j]; one.shown.seconds > 0 && second-one.shown.last <= candidatePatience {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int { return b.shown.compare(&a.shown) })
	return all
}

// admit gives candidates the places of services that have shown less:
//
//  1. The candidate that has shown most is compared with the service that has shown least,
//     the next one with the next, as long as they have shown more.
//  2. These services' calls that are waited for or remembered are forgotten, and their trees
//     added to that of all other services.
//  3. The candidates begin with empty trees. What came of them before is in the other tree.
//
// It is done at most once a second. Services of which a window is being collected stay.
func (s *Store) admit(now uint32) {
	if !s.candidates.seen {
		return
	}
	s.candidates.seen = false
	best, weakest := s.candidates.best(now), s.weakest()
	leaving := map[uint32]bool{}
	number := 0
	for number < min(len(best), len(weakest)) && best[number].shown.exceeds(&weakest[number].shown) {
		leaving[weakest[number].calls.number] = true
		number++
	}
	if number == 0 {
		return
	}
	for n := range s.seen.spans {
		if span := &s.seen.spans[n]; span.state != seenFree && leaving[span.tree] {
			s.forget(uint32(n))
		}
	}
	s.lastCaller = 0
	for i, sv := range weakest[:number] {
		s.join(sv, s.other())
		if s.reset(sv); s.services[sv.name] != nil {
			continue // something needs it
		}
		s.counters.YieldedServices++
		s.begin(best[i].name).shown = best[i].shown
		s.candidates.drop(best[i])
	}
}

// weakest are the services that can leave their places, those first that have shown least.
func (s *Store) weakest() (all []*service) {
	for _, sv := range s.services {
		if sv.name != OtherServices && !sv.isWatched() {
			all = append(all, sv)
		}
	}
	slices.SortFunc(all, func(a, b *service) int { return a.shown.compare(&b.shown) })
	return all
}

// join adds what was counted of a service to another. Nothing waits in its trees.
func (s *Store) join(from, into *service) {
	into.count += from.count
	into.errors += from.errors
	into.called = into.called || from.called
	s.joinTree(from.calls, into.calls)
	for kind, t := range from.profiles {
		if other := s.profile(into, kind); other != nil {
			s.joinTree(t, other)
		}
	}
}

// joinTree adds the paths of a tree to another's.
func (s *Store) joinTree(from, into *tree) {
	numbers := make([]uint32, len(from.nodes))
	s.order = from.preOrder(s.order[:0])
	for _, n := range s.order[1:] {
		at := &from.nodes[n]
		l := at.label
		if f := &from.functions.all[l.function()]; l.function() != 0 {
			function := into.functions.number(f.name, s.settings.MaxNameBytes)
			into.functions.place(function, f.file, f.line, s.settings.MaxNameBytes)
			l = newLabel(function, l.mark())
		}
		numbers[n] = into.child(numbers[at.parent], l)
		into.add(numbers[n], &at.values)
	}
	into.lost.add(from.lost)
}
