// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package load

import "slices"

// Truth is the expected result of an HQ.
type Truth struct {
	// Calls are the calls whose entry was sent, in order of their numbers.
	Calls []Call
	// Orphans is the number of sent returns and exceptions whose call is unknown at their position.
	Orphans int
	// Events is the number of sent call events and markers.
	Events uint64
	// Markers is the number of markers, including lost ones.
	Markers uint64
	// Breaks are the positions at which the stacks become unknown, in order.
	Breaks []Break
}

// Call is the known part of a call.
type Call struct {
	Thread   int
	Function int    // see FunctionName
	Entry    uint64 // its sequence number
	// Parent is the index of the caller in Truth.Calls. It is -1 if there is none, or if a break is between them.
	Parent int
	// Exit is the number of the event that ended the call; meaningless if Truncated.
	Exit uint64
	// Exception is the exception that ended the call, or -1; see ExceptionName.
	Exception int
	// Throws are the exceptions that were thrown in the call while it was known, and whose events were sent.
	Throws []int
	// Truncated is the reason why the end of the call is unknown; "" if it is known.
	Truncated Cause
}

// Cause is the reason of a break.
type Cause string

// The causes. A loss or a clock step that begins at the number of a suspension counts as a suspension.
const (
	Suspended Cause = "suspended"
	Clock     Cause = "clock" // a step of the clock
	Gap       Cause = "gap"   // a buffer was lost
	End       Cause = "end"   // the program never returned from the call
)

// Break is a position at which the stacks become unknown.
type Break struct {
	Number uint64 // the first number after it; for a gap the first missing number
	Cause  Cause
}

// none is the sequence number of an unseen event.
const none = -1

// recorder records the calls of the program.
type recorder struct {
	calls   []recorded
	breaks  []Break // suspensions and steps of the clock
	lost    []uint64
	markers uint64
	numbers uint64 // used so far
}

// recorded is one call as it really happened.
type recorded struct {
	thread    int
	function  int
	parent    int // index in recorder.calls, or -1
	entry     int64
	exit      int64
	ended     bool
	exception int
	throws    []thrown
}

type thrown struct {
	number    uint64
	exception int
}

func (r *recorder) enter(t *thread, method uint32, number int64) int {
	parent := -1
	if n := len(t.stack); n > 0 {
		parent = t.stack[n-1].call
	}
	r.calls = append(r.calls, recorded{
		thread: int(t.id), function: int(method), parent: parent, entry: number, exit: none, exception: -1,
	})
	r.used(number)
	return len(r.calls) - 1
}

func (r *recorder) leave(call int, number int64) {
	r.calls[call].exit, r.calls[call].ended = number, true
	r.used(number)
}

func (r *recorder) unwind(call int, exception uint32, number int64) {
	r.calls[call].exception = int(exception)
	r.leave(call, number)
}

func (r *recorder) throw(call int, exception uint32, number uint64) {
	r.calls[call].throws = append(r.calls[call].throws, thrown{number: number, exception: int(exception)})
	r.used(int64(number))
}

func (r *recorder) mark(number int64) {
	r.markers++
	r.used(number)
}

func (r *recorder) used(number int64) { r.numbers = max(r.numbers, uint64(number+1)) }

func (r *recorder) suspended(number uint64) {
	r.breaks = append(r.breaks, Break{Number: number, Cause: Suspended})
}

func (r *recorder) clockSet(number uint64) {
	r.breaks = append(r.breaks, Break{Number: number, Cause: Clock})
}

func (r *recorder) lose(numbers []uint64) { r.lost = append(r.lost, numbers...) }

// truth returns the knowable facts: a call's end, its exceptions and its parent are known if there is no break between
// them and its entry.
func (r *recorder) truth() Truth {
	k := r.knowledge()
	result := Truth{Events: r.numbers - uint64(len(k.lost)), Markers: r.markers, Breaks: k.breaks}
	place := make([]int, len(r.calls)) // index in result.Calls; -1 if it is not there
	for i, c := range r.calls {
		place[i] = -1
		result.Orphans += k.orphans(c)
		if !k.sent(c.entry) {
			continue
		}
		found := Call{Thread: c.thread, Function: c.function, Entry: uint64(c.entry), Parent: -1, Exception: -1}
		if c.parent >= 0 && k.together(r.calls[c.parent].entry, c.entry) {
			found.Parent = place[c.parent]
		}
		if k.together(c.entry, c.exit) {
			found.Exit, found.Exception = uint64(c.exit), c.exception
		} else {
			found.Truncated = k.cause(c.entry)
		}
		for _, t := range c.throws {
			if k.together(c.entry, int64(t.number)) {
				found.Throws = append(found.Throws, t.exception)
			}
		}
		place[i] = len(result.Calls)
		result.Calls = append(result.Calls, found)
	}
	return result
}

// knowledge has the lost numbers and the breaks.
type knowledge struct {
	lost   map[uint64]bool
	breaks []Break
}

func (r *recorder) knowledge() knowledge {
	k := knowledge{lost: map[uint64]bool{}, breaks: slices.Clone(r.breaks)}
	for _, number := range r.lost {
		k.lost[number] = true
	}
	slices.Sort(r.lost)
	for i, number := range r.lost {
		if i == 0 || r.lost[i-1] != number-1 {
			k.breaks = append(k.breaks, Break{Number: number, Cause: Gap})
		}
	}
	slices.SortStableFunc(k.breaks, func(a, b Break) int {
		switch {
		case a.Number < b.Number:
			return -1
		case a.Number > b.Number:
			return 1
		default:
			return 0
		}
	})
	return k
}

func (k knowledge) sent(number int64) bool { return number != none && !k.lost[uint64(number)] }

// epoch returns the number of breaks before a number.
func (k knowledge) epoch(number int64) int {
	n, _ := slices.BinarySearchFunc(k.breaks, uint64(number)+1, func(b Break, after uint64) int {
		if b.Number < after {
			return -1
		}
		return 1
	})
	return n
}

// together reports whether both numbers were sent without a break between them.
func (k knowledge) together(a, b int64) bool {
	return k.sent(a) && k.sent(b) && k.epoch(a) == k.epoch(b)
}

// cause returns the reason why the events after a number are unknown.
func (k knowledge) cause(number int64) Cause {
	if n := k.epoch(number); n < len(k.breaks) {
		return k.breaks[n].Cause
	}
	return End
}

// orphans counts the sent events of a call at which the call is unknown.
func (k knowledge) orphans(c recorded) int {
	n := 0
	if k.sent(c.exit) && !k.together(c.entry, c.exit) {
		n++
	}
	for _, t := range c.throws {
		if k.sent(int64(t.number)) && !k.together(c.entry, int64(t.number)) {
			n++
		}
	}
	return n
}
