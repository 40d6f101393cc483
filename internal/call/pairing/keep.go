// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"sync"
	"sync/atomic"
	"time"
)

// Keep selects traces. The finished calls of a trace wait until it ends. Then they are
// written to the output if a criterion applies to them, and forgotten otherwise. All streams
// share it, so it must not be copied.
//
// A trace ends when it can have no further calls: no frame of it is open, and its lane does
// not continue it. A trace that waits for too long, or for which there is no memory, is
// decided early. Its calls so far are then one piece. Its later calls are the next piece,
// which is decided on its own.
type Keep struct {
	// SlowerThan is in nanoseconds. A trace is kept if a call without a caller in the trace
	// took so long. An open one counts with its time so far, also while the stream is silent. All later pieces of such a
	// trace are kept too. 0: the criterion is off.
	SlowerThan int64
	// Errors keeps pieces with a call that an exception left, also if the call is left out. Then it also keeps the piece
	// with the caller, whose LeftOut counts the error.
	Errors bool
	// Function reports whether pieces with a call of the function with this qualified name
	// are kept, if the call took at least slowerThan nanoseconds, also if the call is left out. An open call counts with
	// its time so far. Function is called once for each function of a stream; nil: no function is wanted.
	Function func(qualified string) (slowerThan int64, wanted bool)
	// Threshold keeps traces by the random number R of their IDs, below 2^56: those with R >=
	// Threshold. All pieces of a trace have the same R. NoThreshold keeps none, and 0 all.
	Threshold uint64
	// Limiter bounds the kept calls of all streams; nil: no bound.
	Limiter *Limiter
	// FoldShorterThan is in nanoseconds. Calls of one function that are shorter, and follow each other
	// below one caller, become one Call in the output: see Repeated. 0: none.
	FoldShorterThan int64
	// DecideAfter is the time after which a trace is decided early, from its first waiting
	// call on; 0: never.
	DecideAfter time.Duration
	// Now is the monotonic time by which calls of all streams wait. The times of Accept and Expire
	// are those of one stream, and stand still while it is silent; nil: those.
	Now func() time.Duration
	// MaxBytes bounds the memory of waiting calls of all streams; 0: no bound. Inside a step
	// the calls can have an eighth more. Beyond that a stream decides its own oldest traces
	// early. After a step the owner of the streams brings the memory below MaxBytes: see
	// Excess and Stream.DecideOldest.
	MaxBytes int64

	// bytes is the memory of waiting calls of all streams.
	bytes atomic.Int64
}

// NoThreshold is the Threshold above the random numbers of all traces.
const NoThreshold = 1 << 56

// stepShare is the part of MaxBytes that waiting calls can have beyond it inside a step: one
// of so many.
const stepShare = 8

// HeldBytes is the memory of waiting calls.
func (k *Keep) HeldBytes() int64 { return k.bytes.Load() }

// Excess is the memory of waiting calls beyond MaxBytes, or 0.
func (k *Keep) Excess() int64 {
	if k.MaxBytes == 0 {
		return 0
	}
	return max(0, k.bytes.Load()-k.MaxBytes)
}

// charge counts memory of waiting calls. It reports whether their stream has to decide some.
func (k *Keep) charge(bytes int64) (atBound bool) {
	held := k.bytes.Add(bytes)
	return k.MaxBytes > 0 && held > k.MaxBytes+k.MaxBytes/stepShare
}

// Criterion is the reason why a trace was kept. If several apply, it is the first of them.
type Criterion uint8

const (
	// CriterionNone: no criterion applied, or traces are not selected.
	CriterionNone Criterion = iota
	// CriterionSlow: a call without a caller in the trace took at least Keep.SlowerThan.
	CriterionSlow
	// CriterionError: an exception left a call.
	CriterionError
	// CriterionFunction: a wanted function was called.
	CriterionFunction
	// CriterionRatio: only the random number of the trace ID.
	CriterionRatio
	// CriterionCount is the number of criteria.
	CriterionCount
)

func (c Criterion) String() string {
	return [CriterionCount]string{"none", "slow", "error", "function", "ratio"}[c]
}

// Early is the reason why a trace was decided before its end.
type Early uint8

const (
	// EarlyByTime: after Keep.DecideAfter.
	EarlyByTime Early = iota
	// EarlyByBound: at Keep.MaxBytes.
	EarlyByBound
	// EarlyByNames: at Settings.MaxNameBytes, because waiting calls refer to names.
	EarlyByNames
	// EarlyByBudget: the owner of the stream freed memory for all of the process.
	EarlyByBudget
	// EarlyByResource: the resource of the stream has changed.
	EarlyByResource
	// EarlyCount is the number of reasons.
	EarlyCount
)

func (e Early) String() string {
	return [EarlyCount]string{"decide_after", "max_undecided_mib", "max_names_mib", "memory_budget", "resource_changed"}[e]
}

// KeepCounters count decisions. A trace counts once for each piece that has calls. It counts once in
// all, when its first call ends, if only Threshold could keep it and does not.
type KeepCounters struct {
	// Traces and Calls were kept, by criterion. Those of CriterionNone were forgotten.
	Traces, Calls [CriterionCount]uint64
	// RepeatedCalls is the number of kept calls that are in the Call of an earlier one.
	RepeatedCalls uint64
	// LimitedTraces and LimitedCalls were forgotten because of the limiter, by the criterion that would have kept them.
	LimitedTraces, LimitedCalls [CriterionCount]uint64
	// Early are the early decisions, by reason and by the criterion that applied so far.
	Early [EarlyCount][CriterionCount]uint64
}

// Limiter bounds the calls that are kept in a second. Repeated calls in one Call count as one. Several
// goroutines can use it.
//
// A trace passes whole or not at all. One that passes uses up the time that its calls need at the limit. The next one passes
// when that time is over. Up to a second of unused time is saved for later traces. So the mean rate is never above the
// limit, and a trace with more calls than a second has room for can pass.
//
// A quarter of the limit is reserved for each criterion. The traces of a criterion also use up the time that their calls need
// at a quarter of the limit. When that time is over, a trace of the criterion passes also if the time of all is used up. So a
// fast program with many traces of one criterion does not displace a trace of another one. The four quarters are the
// limit. So the calls of T seconds are at most those of T + 2 seconds at the limit, and four traces more.
type Limiter struct {
	now func() time.Duration
	// perSecond is the limit.
	perSecond int64

	mu  sync.Mutex
	all allowance
	// reserves are those of the criteria. That of CriterionNone is not used.
	reserves [CriterionCount]allowance
}

// allowance is the time that calls use up at a rate.
type allowance struct {
	// used is the time up to which calls have used it up. rest is the part of a nanosecond beyond it, in
	// perSecond-ths.
	used time.Duration
	rest int64
}

// reserveShare is the part of the limit, one of so many, that is reserved for a criterion.
const reserveShare = 4

// NewLimiter returns a limiter of calls in a second, at most 1e9. now is the monotonic time.
func NewLimiter(perSecond int64, now func() time.Duration) *Limiter {
	l := &Limiter{now: now, perSecond: perSecond, all: allowance{used: now() - time.Second}}
	for i := range l.reserves {
		l.reserves[i] = l.all
	}
	return l
}

// allows reports whether a trace with so many calls passes.
func (l *Limiter) allows(by Criterion, calls int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, reserve := l.now(), &l.reserves[by]
	if l.all.used > now && reserve.used > now {
		return false
	}
	l.all.use(now, int64(calls), l.perSecond)
	reserve.use(now, int64(calls)*reserveShare, l.perSecond)
	return true
}

// use uses up the time of calls. Up to a second of earlier time is saved.
func (a *allowance) use(now time.Duration, calls, perSecond int64) {
	a.rest += calls * int64(time.Second)
	a.used = max(a.used, now-time.Second) + time.Duration(a.rest/perSecond)
	a.rest %= perSecond
}
