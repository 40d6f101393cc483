// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// candidates are services without a place, with the evidence of each. They are a sketch: a
// flood of names that arrive once does not displace those that return. Names are in buckets by
// their hash. In a full bucket a newcomer reduces the evidence of the weakest candidate, and
// takes its place when nothing is left.
type candidates struct {
	buckets []candidateBucket
	seed    maphash.Seed
	// texts is the memory of the names, in bytes.
	texts int
	// seen: a candidate arrived since the last search.
	seen bool
}

type candidateBucket [8]candidate

type candidate struct {
	name string
	// shown is empty if there is no candidate.
	shown evidence
}

const (
	// candidatesOfService is the number of candidates for each service.
	candidatesOfService = 4
	leastCandidates     = 1024
	// candidatePatience is the number of seconds after which a silent candidate loses its
	// place.
	candidatePatience = 60
)

// see notes a name of which so many spans or samples arrived in a second. services is the
// number of places for services.
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

// best are the candidates that are not silent, the one that has shown most first.
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

// bytes is the memory of the candidates.
func (c *candidates) bytes() int64 {
	return int64(len(c.buckets))*int64(unsafe.Sizeof(candidateBucket{})) + int64(c.texts)
}
