// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxLookups is how many processes are looked at at once: while many agents come, most
	// of the time is for those whose applications still wait.
	maxLookups = 2
	// maxLookupTime is how long one process is looked at.
	maxLookupTime = 100 * time.Millisecond
	// maxSightings is how many processes are remembered.
	maxSightings = 64
)

// sighting is what was seen of a process at a time: enough to say of each connection that
// was there then whether it is the process's.
type sighting struct {
	// begun is when looking began.
	begun time.Time
	// started is when the process was.
	started uint64
	// sockets are the numbers of those that it has open, sorted.
	sockets []uint32
}

// lookups find out in which processes agents are. Who connects says the process's ID, and so
// chooses what is looked at: that takes a bounded time, few are looked at at once, and a
// process is looked at once for all connections that are there by then.
type lookups struct {
	// withArguments says that command lines are read.
	withArguments bool
	// turns has room for those who look.
	turns chan struct{}

	mu sync.Mutex
	// seen are the processes that were looked at last, order their IDs, the oldest first.
	seen  map[uint32]*sighting
	order []uint32
}

func newLookups(withArguments bool) *lookups {
	return &lookups{withArguments: withArguments, turns: make(chan struct{}, maxLookups), seen: map[uint32]*sighting{}}
}

// processOf says what is known of the process with an ID that is said to be at the other
// end of a connection. Nothing is, unless that process has that end open: an ID that an
// agent tells may be that of a process elsewhere, or inside a container, where it means
// another one. Looking takes the rights of its user, or root's. It reports false where it
// has not looked, because that was given up before it was its turn.
func (l *lookups) processOf(c *conversation, pid uint32, givenUp <-chan struct{}) (p process, looked bool) {
	select {
	case <-givenUp:
		return process{}, false
	default:
	}
	select {
	case l.turns <- struct{}{}:
	case <-givenUp:
		return process{}, false
	}
	defer func() { <-l.turns }()
	socket, err := peerSocket(c.conn)
	if err != nil || socket == 0 {
		return process{}, true
	}
	s := l.sighting(pid, c.begun)
	if _, has := slices.BinarySearch(s.sockets, socket); !has {
		return process{}, true
	}
	p = describe(pid, l.withArguments)
	if p.started != s.started {
		// The ID is another process's by now.
		return process{}, true
	}
	return p, true
}

// sighting is one of a process that began when a connection was there: the process has had
// its end since then, if it is its at all.
func (l *lookups) sighting(pid uint32, since time.Time) *sighting {
	l.mu.Lock()
	s := l.seen[pid]
	l.mu.Unlock()
	if s != nil && !s.begun.Before(since) {
		return s
	}
	now := time.Now()
	s = &sighting{begun: now}
	s.started, s.sockets = lookAt(pid, now.Add(maxLookupTime))
	slices.Sort(s.sockets)
	l.remember(pid, s)
	return s
}

// remember remembers a sighting. Where too many are, the oldest is forgotten.
func (l *lookups) remember(pid uint32, s *sighting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[pid] == nil {
		if len(l.order) == maxSightings {
			delete(l.seen, l.order[0])
			l.order = l.order[1:]
		}
		l.order = append(l.order, pid)
	}
	l.seen[pid] = s
}
