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

// processSockets are the sockets of a process at one time. A connection that existed then
// belongs to the process if its peer is one of them.
type processSockets struct {
	// begun is when looking began.
	begun time.Time
	// started is when the process was.
	started uint64
	// sockets are the numbers of those that it has open, sorted.
	sockets []uint32
}

// lookups find the processes of agents. A peer chooses the process ID that is looked up, so
// each lookup has a bounded time, few run at the same time, and one lookup serves all
// connections that exist by then.
type lookups struct {
	// withArguments says that command lines are read.
	withArguments bool
	// turns has room for those who look.
	slots chan struct{}

	mu sync.Mutex
	// seen are the processes that were looked at last, order their IDs, the oldest first.
	sockets map[uint32]*processSockets
	order   []uint32
}

func newLookups(withArguments bool) *lookups {
	return &lookups{withArguments: withArguments, slots: make(chan struct{}, maxLookups), sockets: map[uint32]*processSockets{}}
}

// processOf describes the process with the ID that an agent sent. The result is empty
// unless that process has the other end of the connection open: the ID may belong to
// another machine or to a container. A lookup needs the rights of the process's user, or
// root's. It returns false if the search was given up before it began.
func (l *lookups) processOf(c *conversation, pid uint32, givenUp <-chan struct{}) (p process, looked bool) {
	select {
	case <-givenUp:
		return process{}, false
	default:
	}
	select {
	case l.slots <- struct{}{}:
	case <-givenUp:
		return process{}, false
	}
	defer func() { <-l.slots }()
	socket, err := peerSocket(c.conn)
	if err != nil || socket == 0 {
		return process{}, true
	}
	s := l.socketsOf(pid, c.begun)
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

// socketsOf returns the sockets of a process at a time when a connection already existed.
func (l *lookups) socketsOf(pid uint32, since time.Time) *processSockets {
	l.mu.Lock()
	s := l.sockets[pid]
	l.mu.Unlock()
	if s != nil && !s.begun.Before(since) {
		return s
	}
	now := time.Now()
	s = &processSockets{begun: now}
	s.started, s.sockets = readSockets(pid, now.Add(maxLookupTime))
	slices.Sort(s.sockets)
	l.remember(pid, s)
	return s
}

// remember stores sockets. The oldest ones are evicted.
func (l *lookups) remember(pid uint32, s *processSockets) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sockets[pid] == nil {
		if len(l.order) == maxSightings {
			delete(l.sockets, l.order[0])
			l.order = l.order[1:]
		}
		l.order = append(l.order, pid)
	}
	l.sockets[pid] = s
}
