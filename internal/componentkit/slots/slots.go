// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package slots bounds the open connections of one listener. At the bound a new connection gets the
// slot of one without a complete handshake, so silent connections do not block honest peers. The
// package knows no protocol: its user calls Sent when a connection has sent data, and Establish
// when its handshake is complete.
//
// # Which connection is closed
//
// Connections without a complete handshake are in two queues for each address: those that have sent
// nothing, and those that have sent a part. An IPv6 address counts as its /64 network, because one
// machine can have all addresses of it.
//
//  1. The address is the one that has most connections in its queues; of several, the one
//     with the oldest connection. So an address that opens many closes its own. The queue
//     is the longer one of that address; of two that are equal, that of the silent ones.
//     The connection is the oldest of that queue.
//  2. If that connection is young and its address has no more than an eighth of the slots
//     in its queues, it may be one of a host on which many agents start. Then the connection is the oldest of all
//     addresses.
//  3. If that connection is young too, and few connections have no handshake, none is closed.
//
// A connection whose bytes have arrived and are not read yet goes to the end of the queues
// instead, in each step: its hello may be complete. So hundreds of newer connections were opened before a connection is
// closed. At 4096 slots and 20,000 new connections a second, an agent has 0.1 s for its first byte, and again for the
// rest.
//
// Waiting with Accept while all are young would be worse: the kernel's queue of connections
// would fill, and honest peers would wait there for the retry of TCP, which is a second and
// more.
package slots

import (
	"container/heap"
	"container/list"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// Reason is the reason why a connection was closed.
type Reason string

const (
	// Silent: it had sent nothing, and a new connection got its slot.
	Silent Reason = "silent"
	// Unfinished: it had sent a part of its handshake, or was idle between two requests, and a new connection got its
	// slot.
	Unfinished Reason = "unfinished"
	// NoFiles: the process or the system had too many open files.
	NoFiles Reason = "no_files"
	// Refused: it was new, and no other connection could lose its slot.
	Refused Reason = "refused"
)

const (
	// Grace is the time that a silent connection keeps its slot, if few connections are new. An agent sends its first
	// message within milliseconds.
	Grace = 250 * time.Millisecond
	// crowd is the number of connections without a handshake that counts as a flood. Then the next victim loses its
	// slot even within Grace.
	crowd = 64
	// maxMoved bounds the connections with unread bytes that one new connection moves to the end of their queue.
	maxMoved = 16
)

// Options has the bounds.
type Options struct {
	// Max bounds the open connections, at least 1. Setting is its name.
	Max     int
	Setting string
	// PerAddress bounds the open connections of one address; 0: Max. SettingPerAddress is its name.
	PerAddress        int
	SettingPerAddress string
	// Beyond is the number of connections beyond the bounds that AdmitBeyond admits.
	Beyond int
	// Grace replaces the constant Grace, if it is set. Negative: none.
	Grace time.Duration
	// Closed, if set, is called after a connection was closed for a reason.
	Closed func(Reason)
	// Logger, if set, gets one line for each burst of closed connections.
	Logger *zap.Logger
	// Now replaces time.Now, if it is set.
	Now func() time.Time
	// Unread replaces socket.Unread, if it is set.
	Unread func(net.Conn) bool
}

// Full is the error of a connection that finds no slot.
type Full struct {
	// Setting is the reached bound; Limit is its value.
	Setting string
	Limit   int
}

func (e *Full) Error() string { return fmt.Sprintf("%s is reached (%d)", e.Setting, e.Limit) }

// Slots has the connections of one listener. Its methods can be called from many goroutines.
type Slots struct {
	options Options
	line    logline.Seldom
	// freed has a token after a slot became free.
	freed chan struct{}

	mu sync.Mutex
	// open counts the connections, and waiting those that can lose their slot.
	open, waiting int
	// addresses has all addresses with a connection. crowded is a heap of those with one that can lose its slot: the
	// first has the next victim.
	addresses map[string]*address
	crowded   crowded
	// byAge has all *Slot that can lose their slot, in the order in which they joined their queues.
	byAge list.List
	// joined numbers the joins of queues. An older join has a lower number.
	joined uint64
	// shut: connections without a handshake are closed immediately.
	shut bool
}

// New returns the slots of a listener.
func New(o Options) *Slots {
	if o.Grace == 0 {
		o.Grace = Grace
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Unread == nil {
		o.Unread = socket.Unread
	}
	if o.PerAddress >= o.Max {
		o.PerAddress = 0 // Max is reached earlier
	}
	return &Slots{options: o, freed: make(chan struct{}, 1), addresses: map[string]*address{}}
}

// Admit returns a slot for a new connection, and may close another connection for it. If no slot is free, it returns nil
// and an error that names the bound. The caller must release the slot when it closes the connection.
func (s *Slots) Admit(conn net.Conn) (*Slot, *Full) {
	return s.admit(conn, 0, false)
}

// AdmitBeyond is Admit with the slots beyond the bounds, for a connection whose hello is read before it is refused. It
// may also close a young connection without a handshake.
func (s *Slots) AdmitBeyond(conn net.Conn) (*Slot, *Full) {
	return s.admit(conn, s.options.Beyond, true)
}

// AdmitAlways returns a slot for a new connection, without regard to the bounds.
func (s *Slots) AdmitAlways(conn net.Conn) *Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enter(s.at(keyOf(conn)), conn)
}

func (s *Slots) admit(conn net.Conn, beyond int, hard bool) (*Slot, *Full) {
	s.mu.Lock()
	at := s.at(keyOf(conn))
	var victim *Slot
	var reason Reason
	var full *Full
	switch {
	case s.options.PerAddress > 0 && at.open >= s.options.PerAddress+beyond:
		full = &Full{Setting: s.options.SettingPerAddress, Limit: s.options.PerAddress}
		victim, reason = s.victim(at, hard)
	case s.open >= s.options.Max+beyond:
		full = &Full{Setting: s.options.Setting, Limit: s.options.Max}
		victim, reason = s.victim(nil, hard)
	}
	if full != nil && victim == nil {
		s.dropIfEmpty(at)
		s.mu.Unlock()
		return nil, full
	}
	if victim != nil {
		s.remove(victim)
	}
	slot := s.enter(at, conn)
	s.mu.Unlock()
	if victim != nil {
		s.close(victim, reason, full)
	}
	return slot, nil
}

// Evict closes the next victim, even a young one, because too many files are open. It reports whether there was one.
func (s *Slots) Evict() bool {
	s.mu.Lock()
	victim, _ := s.victim(nil, true)
	if victim != nil {
		s.remove(victim)
	}
	s.mu.Unlock()
	if victim != nil {
		s.close(victim, NoFiles, nil)
	}
	return victim != nil
}

// victim returns the connection that loses its slot, in the order of the package's comment: one of an address or, if
// only is nil, of all. It returns nil if there is none.
func (s *Slots) victim(only *address, hard bool) (*Slot, Reason) {
	for moved := 0; ; moved++ {
		found := s.find(only)
		if found == nil {
			return nil, ""
		}
		if moved < maxMoved && s.options.Unread(found.conn) {
			s.join(found, unfinished)
			continue
		}
		if !hard && s.waiting <= crowd && s.isYoung(found) {
			return nil, ""
		}
		if found.state == silent {
			return found, Silent
		}
		return found, Unfinished
	}
}

// find returns the connection of steps 1 and 2, without regard to unread bytes.
func (s *Slots) find(only *address) *Slot {
	at := only
	if at == nil {
		at = s.crowded.first()
	}
	if at == nil || at.waiting() == 0 {
		return nil
	}
	found := at.silent.first
	if at.unfinished.n > at.silent.n {
		found = at.unfinished.first
	}
	if only == nil && s.isYoung(found) && at.waiting() <= s.options.Max/8 {
		return s.byAge.Front().Value.(*Slot)
	}
	return found
}

func (s *Slots) isYoung(slot *Slot) bool {
	return s.options.Now().Sub(slot.since) < s.options.Grace
}

// close closes a connection that has lost its slot. It resets a silent connection, so that the system keeps no state of
// it, and a flood cannot use up the ports.
func (s *Slots) close(victim *Slot, reason Reason, full *Full) {
	closeRaw(victim.conn, reason == Silent || reason == NoFiles)
	if s.options.Closed != nil {
		s.options.Closed(reason)
	}
	if s.options.Logger == nil {
		return
	}
	since, due := s.line.Count(s.options.Now())
	if !due {
		return
	}
	fields := []zap.Field{
		zap.Stringer("peer", victim.conn.RemoteAddr()), zap.String("reason", string(reason)),
		zap.Int("since_last_line", since),
	}
	if full != nil {
		fields = append(fields, zap.String("setting", full.Setting), zap.Int("limit", full.Limit))
	}
	s.options.Logger.Warn("Connections without a complete handshake are closed to make room for new ones", fields...)
}

// Open returns the number of connections with a slot.
func (s *Slots) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Waiting returns the number of connections that can lose their slot.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Freed returns a channel that receives a token when a slot becomes free, or when a connection becomes one that can lose
// its slot. One goroutine can wait for it.
func (s *Slots) Freed() <-chan struct{} { return s.freed }

// Shut closes all connections without a handshake or between two requests. Later it closes each connection that enters
// such a state.
func (s *Slots) Shut() {
	s.mu.Lock()
	s.shut = true
	var all []*Slot
	for at := s.crowded.first(); at != nil; at = s.crowded.first() {
		next := at.silent.first
		if next == nil {
			next = at.unfinished.first
		}
		s.remove(next)
		all = append(all, next)
	}
	s.mu.Unlock()
	for _, slot := range all {
		closeRaw(slot.conn, false)
	}
}

// enter returns a slot for a new connection. The lock is held.
func (s *Slots) enter(at *address, conn net.Conn) *Slot {
	slot := &Slot{slots: s, at: at, conn: conn}
	// The victim may have been the last of this address.
	s.addresses[at.key] = at
	at.open++
	s.open++
	s.join(slot, silent)
	if s.shut {
		s.remove(slot)
		closeRaw(conn, false)
	}
	return slot
}

// remove removes a connection and its slot. The lock is held.
func (s *Slots) remove(slot *Slot) {
	s.move(slot, closed)
	slot.at.open--
	s.open--
	s.dropIfEmpty(slot.at)
	s.signal()
}

// join moves a connection to the end of a queue. The lock is held.
func (s *Slots) join(slot *Slot, to state) {
	s.joined++
	slot.number, slot.since = s.joined, s.options.Now()
	s.move(slot, to)
}

// move changes the state of a connection. The lock is held.
func (s *Slots) move(slot *Slot, to state) {
	at := slot.at
	if q := at.queue(slot.state); q != nil {
		q.remove(slot)
		s.byAge.Remove(slot.age)
		s.waiting--
	}
	slot.state = to
	if q := at.queue(to); q != nil {
		q.push(slot)
		slot.age = s.byAge.PushBack(slot)
		s.waiting++
	}
	switch waiting := at.waiting() > 0; {
	case waiting && at.place < 0:
		heap.Push(&s.crowded, at)
	case waiting:
		heap.Fix(&s.crowded, at.place)
	case at.place >= 0:
		heap.Remove(&s.crowded, at.place)
	}
}

func (s *Slots) signal() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// Slot is the slot of one connection. Its methods can be called from any goroutine.
type Slot struct {
	slots *Slots
	at    *address
	conn  net.Conn
	// since is the time when it joined its queue, and number the order of joins.
	since      time.Time
	number     uint64
	state      state
	next, prev *Slot
	age        *list.Element
}

// state is the state of a connection.
type state uint8

const (
	closed state = iota
	silent
	unfinished
	established
)

// Sent notes that the connection has sent a part of its handshake. Only the first call moves the connection to another
// queue.
func (s *Slot) Sent() { s.change(silent, unfinished) }

// Establish notes that the handshake is complete, or that a request has arrived. Then the connection keeps its slot. It
// returns false if the connection has lost its slot before.
func (s *Slot) Establish() bool {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	if s.state == closed {
		return false
	}
	if s.state != established {
		s.slots.move(s, established)
	}
	return true
}

// Rest notes that an established connection waits for its next request. Then it can lose its slot.
func (s *Slot) Rest() { s.change(established, unfinished) }

func (s *Slot) change(from, to state) {
	slots := s.slots
	slots.mu.Lock()
	if s.state != from {
		slots.mu.Unlock()
		return
	}
	if slots.shut {
		slots.remove(s)
		slots.mu.Unlock()
		closeRaw(s.conn, false)
		return
	}
	slots.join(s, to)
	slots.signal()
	slots.mu.Unlock()
}

// Release frees the slot. Further calls do nothing.
func (s *Slot) Release() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	if s.state != closed {
		s.slots.remove(s)
	}
}

// Gone reports whether the connection has lost or released its slot.
func (s *Slot) Gone() bool {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return s.state == closed
}
