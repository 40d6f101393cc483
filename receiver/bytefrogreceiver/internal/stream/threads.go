// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

// An agent counts the threads that come to their first event, and sends the lowest 16
// bits of the count as the thread's ID. So thread 65,536 has the ID of thread 0, which
// may still run. The same message says that a new thread has an ID, and that a thread has
// another name. What tells them apart is the count: as long as not nearly all IDs are in
// use, each ID is one thread's, and a second name for it is a new name of that thread.
// Later, the IDs of new threads follow one another; names of other IDs are new names of
// threads that are known.
//
// An old thread that gets another name while the count is just about to come to its ID
// again can't be told from the new thread. It is then taken for that.

const (
	// threadIDs is how many there are.
	threadIDs = 1 << 16
	// threadReach is how far ahead of the count the number of a new thread can be: messages
	// of threads that begin at the same time come on several connections. Behind the count
	// it can be anywhere: there, a number that was not heard of is a new thread's.
	threadReach = 1024
	// maxAhead is how many new threads can be ahead of the count before those that are
	// missing are given up. An agent that is suspended at the wrong moment sends no
	// message for a thread that it has counted.
	maxAhead = 64
)

// threadNumber is the count of a thread: its ID and the bits above it.
type threadNumber struct {
	count int64
	// ahead: those before it had not all come, so it can be another name of the thread
	// that had the ID before.
	ahead bool
}

// threadName is what is known of the names of a thread: the latest, the time in
// ticks from which the thread has it, and when the thread had its first name. How its
// events are called in between is said by renames.
type threadName struct {
	name        string
	first, from int64
	// number is that of the latest thread that has the ID.
	number threadNumber
}

// threadNumbers counts threads.
type threadNumbers struct {
	// highest is the highest count to which all threads have come.
	highest int64
	// ahead is how many threads are ahead of it.
	ahead int
}

// number gives the number of the thread that an ID stands for now, of which old is the
// one before, if that is known. It reports whether it is another thread's. known IDs are
// in use.
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

// catchUp goes on to the threads that were ahead and have nothing before them that is
// missing, or not long ago.
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
