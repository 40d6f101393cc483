// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/binary"
	"sync"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// names are the messages that name methods, exceptions and threads, as the agent sent them: the last one for each. All
// connections of an agent share them.
//
// At the limit the oldest names are evicted. An agent that creates new IDs without end has forgotten the old ones
// itself.
type names struct {
	limit int

	mu sync.Mutex
	// known has the messages by the named thing. order[head:] are the named things, the first named first.
	known map[named]string
	order []named
	head  int
	// bytes is the size of known. forgot is called for each evicted name.
	bytes  int
	forgot func()
	// since has the time from which a thread has its name, in milliseconds of the agent's clock. elapsed returns the
	// present time of that clock.
	since   map[uint16]uint64
	elapsed func() uint64
}

// named identifies a named thing: the type of its message, and its ID. Maps are faster with one number than with a
// struct.
type named uint64

func newNamed(kind bytefrog.MessageType, id uint32) named {
	return named(kind)<<32 | named(id)
}

// thread returns the ID if the named thing is a thread.
func (n named) thread() (id uint16, is bool) {
	return uint16(n), bytefrog.MessageType(n>>32) == bytefrog.TypeMapThreadName
}

// nameBytes is the approximate memory of a name without its message.
const nameBytes = 96

func newNames(limit int, elapsed func() uint64, forgot func()) *names {
	return &names{forgot: forgot, limit: limit, known: map[named]string{}, since: map[uint16]uint64{}, elapsed: elapsed}
}

// remember stores a message that names something.
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
	thing := newNamed(kind, id)
	old, known := n.known[thing]
	switch {
	case known && old == string(m):
		return
	case known:
		n.bytes -= len(old)
	default:
		n.order = append(n.order, thing)
		n.bytes += nameBytes
	}
	n.known[thing] = string(m)
	n.bytes += len(m)
	for n.bytes > n.limit {
		n.forgetOldest()
	}
}

// isNewest reports whether no known name of a thread is later than this time. Names of threads arrive out of order.
func (n *names) isNewest(thread uint16, ms uint32) bool {
	at := unwrap(n.elapsed(), ms)
	if before, known := n.since[thread]; known && before > at {
		return false
	}
	n.since[thread] = at
	return true
}

// longAgo is the earliest time before a run's begin that the collector gets for a thread's name, in milliseconds: a
// day. Times wrap around after 49 days, and half of that would be in the future.
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

// sendAll sends every name in the order of the first naming, with the times of the translation's run. send must not
// keep the bytes.
func (n *names) sendAll(t translation, send func(m []byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var m []byte
	for _, thing := range n.order[n.head:] {
		m = append(m[:0], n.known[thing]...)
		translateName(m, t)
		if thread, is := thing.thread(); is && n.since[thread]+longAgo < t.ticks {
			binary.BigEndian.PutUint32(m[threadTimeOffset:], 1<<32-longAgo)
		}
		send(m)
	}
}

// forget evicts the oldest names until so many bytes are free, and returns their number.
func (n *names) forget(bytes int64) (forgotten int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for most := int64(n.bytes) - bytes; int64(n.bytes) > most && n.head < len(n.order); forgotten++ {
		n.forgetOldest()
	}
	return forgotten
}

// size returns the memory of the names.
func (n *names) size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bytes
}
