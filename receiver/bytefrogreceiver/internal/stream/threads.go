// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

// An agent counts the threads that come to their first event, and sends the lowest 16 bits of the count as the
// thread's ID. So thread 65,536 has the ID of thread 0, which may still run. One kind of message names a new thread
// and renames a known one. The count distinguishes them. While there are free IDs, each ID belongs to one thread, and
// a second name for it is a new name of that thread. Later, new threads get consecutive IDs. Names of other IDs are
// new names of known threads.
//
// If an old thread gets another name just before the count reaches its ID again, it cannot be distinguished from the
// new thread, and counts as the new thread.

const (
	// threadIDs is the number of IDs.
	threadIDs = 1 << 16
	// threadReach is the distance by which the number of a new thread can be ahead of the count: messages of threads
	// that begin at the same time arrive on several connections. Behind the count the distance has no limit: there,
	// an unknown number is a new thread's.
	threadReach = 1024
	// maxAhead is the number of new threads ahead of the count at which the count no longer waits for missing
	// threads. An agent that is suspended at the wrong moment sends no message for a thread that it has counted.
	maxAhead = 64
)

// threadNumber is the count of a thread: its ID and the bits above it.
type threadNumber struct {
	count int64
	// ahead: a thread before it was missing, so the message can be another name of the former thread with the ID.
	ahead bool
}

// threadName is the latest name of a thread, the time in ticks from which the thread has it, and the time of its
// first name. Renames have the names between these times.
type threadName struct {
	name        string
	first, from int64
	// number is the number of the latest thread with the ID.
	number threadNumber
}

// threadNumbers counts threads.
type threadNumbers struct {
	// highest is the highest count up to which all threads are known.
	highest int64
	// ahead is the number of known threads ahead of it.
	ahead int
}

// number is the number of the thread that has an ID now. old is the number of the ID's former thread, if that is
// known. number reports whether another thread has the ID now. inUse is the number of IDs in use.
func (t *threadNumbers) number(thread uint16, old threadNumber, known bool, inUse int) (_ threadNumber, reused bool) {
	if inUse < threadIDs-threadReach {
		if known {
			return old, false
		}
		t.highest = max(t.highest, int64(thread))
		return threadNumber{count: int64(thread)}, false
	}
	distance := int64(int16(thread - uint16(t.highest)))
	count := t.highest + distance
	isNew := count > old.count || old.ahead && count == old.count
	switch {
	case !known && count < threadIDs:
		t.highest = max(t.highest, count)
		return threadNumber{count: count}, false
	case known && (count < threadIDs || distance > threadReach || !isNew):
		return old, false
	}
	number := threadNumber{count: count, ahead: distance > 1}
	if number.ahead && !(old.ahead && count == old.count) {
		t.ahead++
	}
	if distance == 1 {
		t.highest++
	}
	return number, known
}

// catchUp advances the count to the threads ahead of it, while no thread before them is missing, or too many threads
// are ahead.
func (t *threadNumbers) catchUp(threads map[uint16]threadName) {
	for n := 0; t.ahead > 0 && n < threadIDs; n++ {
		next := threads[uint16(t.highest+1)]
		there := next.number.ahead && next.number.count == t.highest+1
		if !there && t.ahead < maxAhead {
			return
		}
		t.highest++
		if there {
			t.ahead--
			next.number.ahead = false
			threads[uint16(t.highest)] = next
		}
	}
}
