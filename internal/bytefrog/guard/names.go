// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/binary"
	"sync"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// names are the messages with which an agent gave names to methods, exceptions and
// threads, as it sent them: the last one for each. It is for all connections of an agent.
//
// What doesn't fit goes, the oldest first: an agent that gives out IDs without end does
// so because it has forgotten the old ones itself.
type names struct {
	limit int

	mu sync.Mutex
	// known has the messages by what they name; order says in which order that was first
	// named, from head on.
	known map[named]string
	order []named
	head  int
	// bytes is what known holds. forgot is called for each name that has to go.
	bytes  int
	forgot func()
	// since says from which time on a thread has its name, in milliseconds of the
	// agent's clock, and elapsed where that is.
	since   map[uint16]uint64
	elapsed func() uint64
}

// named is what has a name: its ID, below the type of the message that says it. In one
// number, of which maps are faster than of a struct.
type named uint64

func newNamed(kind bytefrog.MessageType, id uint32) named {
	return named(kind)<<32 | named(id)
}

// thread gives the ID of a thread that is named.
func (n named) thread() (id uint16, is bool) {
	return uint16(n), bytefrog.MessageType(n>>32) == bytefrog.TypeMapThreadName
}

// nameBytes is what a name costs beside its message, roughly.
const nameBytes = 96

func newNames(limit int, elapsed func() uint64, forgot func()) *names {
	return &names{forgot: forgot, limit: limit, known: map[named]string{}, since: map[uint16]uint64{}, elapsed: elapsed}
}

// remember takes a map message.
func (n *names) remember(m []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kind, id := bytefrog.MessageType(m[0]), binary.BigEndian.Uint32(m[1:])
	if kind == bytefrog.TypeMapThreadName {
		thread := binary.BigEndian.Uint16(m[1:])
		if !n.isNewest(thread, binary.BigEndian.Uint32(m[threadTimeOffset:])) {
			return
		}
		id = uint32(thread)
	}
	what := newNamed(kind, id)
	old, known := n.known[what]
	switch {
	case known && old == string(m):
		return
	case known:
		n.bytes -= len(old)
	default:
		n.order = append(n.order, what)
		n.bytes += nameBytes
	}
	n.known[what] = string(m)
	n.bytes += len(m)
	for n.bytes > n.limit {
		n.forgetOldest()
	}
}

// isNewest reports whether a thread has been named by no later time than this one. Names
// of threads come out of order.
func (n *names) isNewest(thread uint16, ms uint32) bool {
	at := unwrap(n.elapsed(), ms)
	if before, known := n.since[thread]; known && before > at {
		return false
	}
	n.since[thread] = at
	return true
}

// longAgo is how far before a run's begin a thread is said to have got its name at the most,
// in milliseconds: a day. Half of the 49 days after which times wrap around would be the
// future to who is told.
const longAgo = 24 * 60 * 60 * 1000

func (n *names) forgetOldest() {
	oldest := n.order[n.head]
	n.head++
	if n.head > len(n.order)/2 {
		n.order = append([]named(nil), n.order[n.head:]...)
		n.head = 0
	}
	n.bytes -= len(n.known[oldest]) + nameBytes
	n.forgot()
	delete(n.known, oldest)
}

// each gives every name, in the order in which they were first given, as the run of the
// translation has it. What is given may be used until the next.
func (n *names) each(t translation, give func(m []byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var m []byte
	for _, what := range n.order[n.head:] {
		m = append(m[:0], n.known[what]...)
		translateName(m, t)
		if thread, is := what.thread(); is && n.since[thread]+longAgo < t.ticks {
			binary.BigEndian.PutUint32(m[threadTimeOffset:], 1<<32-longAgo)
		}
		give(m)
	}
}

// forget has the oldest names go until they take so many bytes less, and returns how many.
func (n *names) forget(bytes int64) (forgotten int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for most := int64(n.bytes) - bytes; int64(n.bytes) > most && n.head < len(n.order); forgotten++ {
		n.forgetOldest()
	}
	return forgotten
}

// size is how many bytes the names take.
func (n *names) size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bytes
}
