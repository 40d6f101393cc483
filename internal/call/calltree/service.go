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

// Service describes a service.
type Service struct {
	// Name is the name in the telemetry. It can be any text, empty too.
	Name string
	// Threads is the number of threads with calls or samples within PendingTimeout, or with
	// kept spans. ThreadsMore: there were more than are counted.
	Threads     int
	ThreadsMore bool
	// Calls and Errors count since From, which is the start or the last reset.
	Calls, Errors uint64
	From          time.Time
	// Rate is the recent number of calls per second.
	Rate float64
	// LastSeen is the time of the last call or sample.
	LastSeen time.Time
	// CountedTwice: spans that count and call paths arrived since From.
	CountedTwice bool
	// Kinds are those with trees: Calls first, then in the order of their texts.
	Kinds []Kind
}

// service is a service of a store.
type service struct {
	name     string
	calls    *tree
	profiles map[Kind]*tree
	threads  threads
	// instance is that of the last spans: a number of the functions of calls.
	instance uint32
	missing  Missing
	// called: calls arrived, not only samples. hasSpans and hasPaths: spans that count, and call
	// paths, arrived since the last reset. mixed: both did, and were counted.
	called, hasSpans, hasPaths, mixed bool

	count, errors uint64
	from, last    time.Time
	// arrivals is the number of messages, or parts of them, with its data.
	arrivals uint64
	rate     rate
	// shown is the evidence of the service since it was made. Resets leave it.
	shown evidence
}

// setInstance sets the instance of the next spans. Its text is among the functions while a kept
// span refers to it.
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

// countArrival counts spans or samples that arrive.
func (sv *service) countArrival(now time.Time, second uint32, items uint64) {
	sv.last = now
	sv.arrivals++
	sv.shown.add(second, max(1, items))
}

// countCalls counts folded calls.
func (sv *service) countCalls(calls, errors uint64) {
	sv.called = true
	sv.count = plusCount(sv.count, calls)
	sv.errors = plusCount(sv.errors, errors)
}

// trees are all trees of the service.
func (sv *service) trees() []*tree {
	all := []*tree{sv.calls}
	for _, t := range sv.profiles {
		all = append(all, t)
	}
	return all
}

// isWatched reports whether a tree of the service has a window.
func (sv *service) isWatched() bool {
	return slices.ContainsFunc(sv.trees(), func(t *tree) bool { return len(t.windows) > 0 })
}

// describe returns the description of the service.
func (sv *service) describe(second uint32) Service {
	return Service{
		Name: sv.name, Threads: sv.threads.count(), ThreadsMore: sv.threads.more,
		Calls: sv.count, Errors: sv.errors, From: sv.from,
		Rate: sv.rate.of(second), LastSeen: sv.last, CountedTwice: sv.mixed, Kinds: sv.kinds(),
	}
}

// kinds are those with calls or samples.
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
func (sv *service) bytes() int64 {
	return emptyServiceBytes + int64(len(sv.name)) + sv.threads.bytes() + sv.rate.bytes()
}
