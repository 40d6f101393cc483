// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Service is what is known of a service.
type Service struct {
	// Name is the service's as telemetry told it: it can be anything, empty too.
	Name string
	// Threads is how many threads made calls, or were sampled, in PendingTimeout, or have spans
	// that are kept; ThreadsMore that there were more than are counted.
	Threads     int
	ThreadsMore bool
	// Calls and Errors are since From, the start or the last reset.
	Calls, Errors uint64
	From          time.Time
	// Rate is how many calls came in a second, of late.
	Rate float64
	// LastSeen is when the last call or sample came.
	LastSeen time.Time
	// Kinds are those that there are trees of: Calls first, then in the order of their
	// texts.
	Kinds []Kind
}

// service is a service of a store.
type service struct {
	name     string
	calls    *tree
	profiles map[Kind]*tree
	threads  threads
	// instance is which one spans were of last: a number of the functions of calls.
	instance uint32
	missing  Missing
	// called: calls came, and not samples alone.
	called        bool
	count, errors uint64
	from, last    time.Time
	rate          rate
	// shown is what came of it since it is there: resets leave it.
	shown evidence
}

// setInstance sets the instance of the next spans. Its text is kept where that of functions
// are, as long as a span is kept that is of it.
func (sv *service) setInstance(instance string) {
	sv.threads.setInstance(instance)
	instance = Cut(instance, maxThreadName)
	f := &sv.calls.functions
	if f.all[sv.instance].name == instance {
		return
	}
	f.unref(sv.instance)
	if sv.instance = 0; instance != "" {
		sv.instance = f.number(instance, maxThreadName)
	}
	f.ref(sv.instance)
}

// countArrival counts calls or samples that arrive.
func (sv *service) countArrival(now time.Time, second uint32, calls int) {
	sv.last = now
	sv.shown.add(second, max(1, uint64(calls)))
	sv.rate.add(second, uint64(calls))
}

// countCall counts a folded call.
func (sv *service) countCall(failed bool) {
	sv.called = true
	sv.count++
	if failed {
		sv.errors++
	}
}

// trees are all trees of the service.
func (sv *service) trees() []*tree {
	all := []*tree{sv.calls}
	for _, t := range sv.profiles {
		all = append(all, t)
	}
	return all
}

// isWatched reports whether a window is being collected of a tree of the service.
func (sv *service) isWatched() bool {
	return slices.ContainsFunc(sv.trees(), func(t *tree) bool { return len(t.windows) > 0 })
}

// describe returns the description of the service.
func (sv *service) describe(second uint32) Service {
	return Service{
		Name: sv.name, Threads: sv.threads.count(), ThreadsMore: sv.threads.more,
		Calls: sv.count, Errors: sv.errors, From: sv.from,
		Rate: sv.rate.of(second), LastSeen: sv.last, Kinds: sv.kinds(),
	}
}

// kinds are those of which something came.
func (sv *service) kinds() []Kind {
	kinds := slices.SortedFunc(maps.Keys(sv.profiles), func(a, b Kind) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Unit, b.Unit))
	})
	if sv.called {
		kinds = slices.Insert(kinds, 0, Calls)
	}
	return kinds
}

const emptyServiceBytes = 500

// bytes is the memory of the service beside its trees.
func (sv *service) bytes() int64 { return emptyServiceBytes + int64(len(sv.name)) + sv.threads.bytes() }
