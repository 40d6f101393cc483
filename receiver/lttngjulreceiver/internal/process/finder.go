// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package process finds the process at the other end of a local connection, and describes it: program, arguments and
// start. Only Linux shows this, and only to the user of the process or to root.
//
// A peer chooses the process ID that is looked up. So each lookup has a bounded time, few run at the same time, and one
// lookup serves all connections that exist by then.
package process

import (
	"net"
	"slices"
	"sync"
	"time"
)

// Process describes a process. Empty: it was not found.
type Process struct {
	// Name is the name of the executable file.
	Name string
	// Arguments are the command line with the program's name, if the finder reads it.
	Arguments []string
	// Started is the start of the process in a unit of the system. Zero: unknown.
	Started uint64
}

const (
	// maxLookups bounds the concurrent lookups. While many agents connect, most processor time should go to agents whose
	// applications wait.
	maxLookups = 2
	// maxLookupTime bounds the search through the open files of one process.
	maxLookupTime = 100 * time.Millisecond
	// maxRemembered bounds the processes whose sockets are remembered.
	maxRemembered = 64
)

// openSockets are the sockets of a process at one time. A connection that existed then belongs to the process if its
// peer is one of them.
type openSockets struct {
	// searched is when the search began.
	searched time.Time
	started  uint64
	// inodes are the numbers of the sockets, sorted.
	inodes []uint32
}

// Finder finds processes. It is safe for concurrent use.
type Finder struct {
	readArguments bool
	// slots has room for the lookups that run.
	slots chan struct{}

	mu sync.Mutex
	// sockets has the latest searches by process ID, and order their IDs, the oldest first.
	sockets map[uint32]*openSockets
	order   []uint32
}

// NewFinder returns a finder. With readArguments it reads command lines, which can hold secrets.
func NewFinder(readArguments bool) *Finder {
	return &Finder{readArguments: readArguments, slots: make(chan struct{}, maxLookups), sockets: map[uint32]*openSockets{}}
}

// Find describes the process with an ID, if it has the other end of a connection open: the ID may belong to another
// machine or to a container. since is a time when the connection existed. It returns false if cancelled was closed
// before the lookup began.
func (f *Finder) Find(conn net.Conn, since time.Time, pid uint32, cancelled <-chan struct{}) (p Process, searched bool) {
	select {
	case <-cancelled:
		return Process{}, false
	default:
	}
	select {
	case f.slots <- struct{}{}:
	case <-cancelled:
		return Process{}, false
	}
	defer func() { <-f.slots }()
	inode, err := peerSocket(conn)
	if err != nil || inode == 0 {
		return Process{}, true
	}
	s := f.socketsOf(pid, since)
	if _, has := slices.BinarySearch(s.inodes, inode); !has {
		return Process{}, true
	}
	p = describe(pid, f.readArguments)
	if p.Started != s.started {
		return Process{}, true // another process has the ID now
	}
	return p, true
}

// socketsOf returns the sockets of a process at a time not before since.
func (f *Finder) socketsOf(pid uint32, since time.Time) *openSockets {
	f.mu.Lock()
	s := f.sockets[pid]
	f.mu.Unlock()
	if s != nil && !s.searched.Before(since) {
		return s
	}
	now := time.Now()
	s = &openSockets{searched: now}
	s.started, s.inodes = readSockets(pid, now.Add(maxLookupTime))
	slices.Sort(s.inodes)
	f.remember(pid, s)
	return s
}

// remember stores sockets. The oldest ones are evicted.
func (f *Finder) remember(pid uint32, s *openSockets) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sockets[pid] == nil {
		if len(f.order) == maxRemembered {
			delete(f.sockets, f.order[0])
			f.order = f.order[1:]
		}
		f.order = append(f.order, pid)
	}
	f.sockets[pid] = s
}
