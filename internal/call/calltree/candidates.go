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

// bytes is the memory of the candidates.
func (c *candidates) bytes() int64 {
	return int64(len(c.buckets))*int64(unsafe.Sizeof(candidateBucket{})) + int64(c.texts)
}
