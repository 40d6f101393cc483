// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// reuse is the state of a lane whose ID another thread has now. If the former thread had
// open calls, both may go on, and events do not tell them apart. From then on the lane is
// shared:
//
//   - The calls that were open are truncated.
//   - A new call has no parent, a trace of its own, and no thread name.
//   - The exit of a function ends its call, if the function is open once. If it is open more
//     than once, an exit could end any of these calls, so all of them are truncated.
//   - A thrown exception belongs to no call. One that leaves a call ends it.
//
// When all calls have ended, the truncated ones too, no thread is inside a call, and the
// lane is no longer shared. A break hides whether that is so: a shared lane then stays
// shared, and so does one that had open calls at a break before the reuse.
//
// Three fields have the place of the other thread's first event. That event can be earlier than its rename says, so
// two of them have a margin:
//
//	field  of the rename  margin before    use
//	from   After          ReuseMargin      begins: an event of this number or a later one may be the first
//	at     Time           ReuseMarginTime  begins: an event of this time or a later one may be the first
//	time   Time           none             pending ends at an event of this time or a later one
type reuse struct {
	// rank is the Rank of the latest rename that announces the reuse.
	rank uint32
	// pending: the lane is not past the rename.
	pending  bool
	from     uint64
	at, time int64

	shared bool
	// open are the calls of a shared lane by function: those with frames, and truncated ones
	// whose exits have not arrived.
	open map[uint32]sharedCalls
	// total is the number of these calls.
	total int
	// breaks is the stream's number of breaks at the lane's last event.
	breaks uint64
}

// sharedCalls are the open calls of a function on a shared lane.
type sharedCalls struct {
	n int32
	// unsure: several were open at the same time, so an exit may end any of them.
	unsure bool
}

const (
	reuseBytes = int(unsafe.Sizeof(reuse{})) + nameOverhead
	// maxShared bounds the open functions of a shared lane. With more, the lane is shared
	// until the stream forgets its names.
	maxShared = 4096
)

// isNew reports whether a rename announces another reuse, or may have an earlier place of the pending one: the first
// writers sent a rename of one rank twice, at first without its number.
func (r *reuse) isNew(from *callevent.Rename) bool {
	return from.Rank > r.rank || from.Rank == r.rank && r.pending
}

// accept notes a rename that announces the reuse.
func (r *reuse) accept(from *callevent.Rename) {
	after, at := from.After, from.Time-callevent.ReuseMarginTime
	if after != callevent.MaxSequence {
		after -= min(after, callevent.ReuseMargin)
	}
	if r.pending {
		// The lane is not past an earlier reuse. The earlier place is the safe one.
		after, at = min(after, r.from), min(at, r.at)
	}
	r.rank, r.pending, r.from, r.at, r.time = from.Rank, true, after, at, from.Time
}

// begins reports whether the event may be the other thread's first.
func (r *reuse) begins(e *event, sequence uint64) bool {
	return r.pending && (sequence >= r.from || e.time >= r.at)
}

// prepare prepares to share the lane: no call is open, except an unknown one if a break
// cut the lane's stack.
func (r *reuse) prepare(cut bool, breaks uint64) {
	r.open, r.total, r.breaks = map[uint32]sharedCalls{}, 0, breaks
	if cut {
		r.total++
	}
}

// noteBreaks notes the stream's number of breaks. After another one, calls may be open
// whose entry is lost.
func (r *reuse) noteBreaks(breaks uint64) {
	if r.breaks != breaks {
		r.breaks = breaks
		r.total++
	}
}

// enter counts a new call, and reports whether its exit will be recognised.
func (r *reuse) enter(function uint32) (sure bool) {
	r.total++
	if _, there := r.open[function]; !there && len(r.open) >= maxShared {
		return false
	}
	calls := r.open[function]
	calls.n++
	calls.unsure = calls.unsure || calls.n > 1
	r.open[function] = calls
	return !calls.unsure
}

// exit counts a call that ends. It reports false if no such call is known.
func (r *reuse) exit(function uint32) bool {
	calls, there := r.open[function]
	if !there {
		return false
	}
	r.total--
	if calls.n--; calls.n == 0 {
		delete(r.open, function)
	} else {
		r.open[function] = calls
	}
	return true
}

// unshareIfIdle ends the sharing if no call is open.
func (r *reuse) unshareIfIdle() {
	if r.total == 0 {
		r.shared, r.open = false, nil
	}
}
