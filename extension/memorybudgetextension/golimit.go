// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// goPercentage is the largest limit of Go's runtime, as a share of a memory_limiter's limit.
	goPercentage = 90
	// usualPercentage is the share up to which Go's runtime collects garbage as usual: when there is
	// as much garbage as live memory. For a low memory_limiter it is usualMiB.
	usualPercentage = 35
	usualMiB        = 512
	// garbagePart is the part of live memory that garbage has beyond that share, as its denominator.
	garbagePart = 2
	// stepPart is the smallest change of the limit, as the denominator of its part. Each change stops
	// the program for a moment.
	stepPart = 16
)

// goLimit is the soft memory limit of Go's runtime. Without one, garbage grows to the size of all
// live memory before it is collected. A memory_limiter counts it, and then refuses all data.
// A fixed limit is not enough: far below it there is too much garbage, and near it Go collects
// without pause. So the limit changes after a collection, with the live memory:
//
//  1. It is live memory, half as much garbage, and the memory that has no objects: stacks, unused
//     memory between objects, and tables of the runtime.
//  2. It is at least usual. Below that Go collects garbage as usual.
//  3. It is at most most. If the user set GOGC it is always most.
type goLimit struct {
	usual, most int64
	// set sets the limit of the runtime, in bytes, and returns the previous one; -1 changes nothing.
	set func(bytes int64) int64
	// read returns the memory of objects after the last collection.
	read func() objectMemory

	mu sync.Mutex
	// previous is the limit for the end, and current the one that was set last; 0: none is set.
	previous, current int64
	// others is the memory without objects, as far as the goals of collections have shown it.
	others int64
}

// objectMemory is the memory of objects, in bytes: what the last collection left, and the goal at which the next
// one ends.
type objectMemory struct{ live, goal int64 }

func newGoLimit() *goLimit { return &goLimit{set: debug.SetMemoryLimit, read: readObjectMemory} }

func readObjectMemory() objectMemory {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"}}
	metrics.Read(samples)
	return objectMemory{live: int64(samples[0].Value.Uint64()), goal: int64(samples[1].Value.Uint64())}
}

// begin sets a limit below that of a memory_limiter, in bytes, unless there is one already.
func (l *goLimit) begin(limiter int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != 0 || l.set(-1) != math.MaxInt64 {
		return
	}
	l.most = limiter / 100 * goPercentage
	l.usual = min(l.most, max(limiter/100*usualPercentage, usualMiB*mib))
	if os.Getenv("GOGC") != "" {
		l.usual = l.most // the user chose the amount of garbage
	}
	l.current = l.usual
	l.previous = l.set(l.current)
	if l.usual < l.most {
		runtime.SetFinalizer(&collection{limit: l}, (*collection).end)
	}
}

// end sets the previous limit again. A second call does nothing.
func (l *goLimit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != 0 {
		l.set(l.previous)
		l.current = 0
	}
}

// follow changes the limit after a collection. It reports false after the end.
func (l *goLimit) follow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == 0 {
		return false
	}
	m := l.read()
	l.estimateOthers(m)
	next := min(l.most, max(l.usual, m.live+m.live/garbagePart+l.others))
	if step := next - l.current; max(step, -step) > l.current/stepPart {
		l.current = next
		l.set(next)
	}
	return true
}

// estimateOthers updates the memory without objects. Go's runtime subtracts it from the limit to find its goal. But
// the goal is at most twice the live memory, by GOGC. Then the limit shows only how much it can be at most.
// Figures of unused memory would not do: after a collection they contain the places of its garbage.
func (l *goLimit) estimateOthers(m objectMemory) {
	most := max(0, l.current-m.goal)
	if m.goal < 2*m.live {
		l.others = most
	}
	l.others = min(l.others, most)
}

// collection is an object without references. So Go's runtime calls end after each collection.
type collection struct{ limit *goLimit }

func (c *collection) end() {
	if c.limit.follow() {
		runtime.SetFinalizer(c, (*collection).end)
	}
}
