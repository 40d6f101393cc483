// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package slots bounds the open connections of one listener. At the bound a new
// connection takes the slot of one that has not completed its handshake, so silent
// connections keep no honest peer out. The package knows no protocol: its user says when
// a connection has sent something and when its handshake is complete.
//
// # Which connection is closed
//
// Connections without a complete handshake stand in two queues for each address: those
// that have sent nothing, and those that have sent a part. An IPv6 address counts as its
// /64 network, because one machine can have all addresses of it.
//
//  1. The address is the one that has most connections in its queues; of several, the one
//     with the oldest connection. So an address that opens many closes its own. The queue
//     is the longer one of that address; of two that are equal, that of the silent ones.
//     The connection is the oldest of that queue.
//  2. If that connection is young and its address has no more than an eighth of the slots
//     in its queues, it may be one of a host on which many agents start. Then the oldest
//     connection of all addresses is taken.
//  3. If that one is young too, and few connections have no handshake, none is closed.
//
// A connection whose bytes have arrived and are not read yet goes to the end of the queues
// instead, whichever step finds it: its hello may be complete. Before a connection is
// closed, then, hundreds of others were opened after it. At 4096 slots and 20,000 new
// connections a second an agent has 0.1 s for its first byte, and again for the rest.
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

// Reason says why a connection was closed.
type Reason string

const (
	// Silent: it had sent nothing, and its slot was needed.
	Silent Reason = "silent"
	// Unfinished: it had sent a part of its handshake, or was idle between two requests,
	// and its slot was needed.
	Unfinished Reason = "unfinished"
	// NoFiles: the process or the system had too many open files.
	NoFiles Reason = "no_files"
	// Refused: it was new, and no other could lose its slot.
	Refused Reason = "refused"
)

const (
	// Grace is how long a connection keeps its slot though it has sent nothing, where
	// few are new. An agent sends its first message within milliseconds.
	Grace = 250 * time.Millisecond
	// crowd is how many connections without a handshake are a flood: the next victim
	// loses its slot even within Grace.
	crowd = 64
	// maxMoved bounds the connections that are moved for one new connection because bytes
	// of them have arrived.
	maxMoved = 16
)

// Options say what the bounds are.
type Options struct {
	// Max is how many connections can be open, at least 1. Setting is its name.
	Max     int
	Setting string
	// PerAddress is how many of them one address can have; 0: as many as there are.
	// SettingPerAddress is its name.
	PerAddress        int
	SettingPerAddress string
	// Beyond is how many connections beyond the bounds AdmitBeyond lets in.
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
	// Setting is the bound that was reached; Limit is its value.
	Setting string
	Limit   int
}

func (e *Full) Error() string { return fmt.Sprintf("%s is reached (%d)", e.Setting, e.Limit) }

// Slots are the connections of one listener. It is for many goroutines.
type Slots struct {
	options Options
	line    logline.Seldom
	// freed has a token after a slot became free.
	freed chan struct{}

	mu sync.Mutex
	// open is how many connections there are, and waiting how many of them can lose
	// their slot.
	open, waiting int
	// addresses are those that have a connection; crowded are those of them that have one
	// without a handshake, as a heap: the first is that of the next victim.
	addresses map[string]*address
	crowded   crowded
	// byAge are all *Slot that can lose their slot, in the order in which they joined
	// their queues.
	byAge list.List
	// joined counts how often a connection joined a queue: it says which is older.
	joined uint64
	// shut says that connections without a handshake are closed immediately.
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
		o.PerAddress = 0 // the other bound is reached before
	}
	return &Slots{options: o, freed: make(chan struct{}, 1), addresses: map[string]*address{}}
}

// Admit gives a new connection a slot, for which it may close another. Where there is
// none the slot is nil and the error says which bound is reached. The slot has to be
// released when the connection is closed.
func (s *Slots) Admit(conn net.Conn) (*Slot, *Full) {
	return s.admit(conn, 0, false)
}

// AdmitBeyond is Admit with the slots beyond the bounds, for a connection that is heard
// to be refused. It closes any connection without a handshake, however young.
func (s *Slots) AdmitBeyond(conn net.Conn) (*Slot, *Full) {
	return s.admit(conn, s.options.Beyond, true)
}

// AdmitAlways gives a new connection a slot, whatever the bounds are.
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

// Evict closes the next victim, however young, because there are too many open files. It
// reports whether there was one.
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

// victim is the connection that loses its slot, in the order of the package's comment: one
// of an address, or of all where that is nil. The slot is nil where there is none.
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

// find is victim without what has arrived and without step 3.
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

// close closes a connection that has lost its slot. One that has sent nothing is reset:
// the system keeps no state of it, so a flood can't use up its ports.
func (s *Slots) close(victim *Slot, reason Reason, full *Full) {
	closeRaw(victim.conn, reason == Silent || reason == NoFiles)
	if s.options.Closed != nil {
		s.options.Closed(reason)
	}
	if s.options.Logger == nil {
		return
	}
	since, say := s.line.Say(s.options.Now())
	if !say {
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

// Open is how many connections have a slot.
func (s *Slots) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Waiting is how many of them can lose their slot.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Freed has a token after a slot became free or a connection became one that can lose
// its slot. One goroutine can wait for it.
func (s *Slots) Freed() <-chan struct{} { return s.freed }

// Shut closes all connections without a handshake or between two requests, and those that
// become so from now on.
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

// enter makes the slot of a new connection. The lock is held.
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

// remove takes the slot from a connection. The lock is held.
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

// Slot is the slot of one connection. Its methods are for any goroutine.
type Slot struct {
	slots *Slots
	at    *address
	conn  net.Conn
	// since and number say when it joined its queue: the lower the number, the earlier.
	since      time.Time
	number     uint64
	state      state
	next, prev *Slot
	age        *list.Element
}

// state is what is known of a connection.
type state uint8

const (
	closed state = iota
	silent
	unfinished
	established
)

// Sent says that the connection has sent a part of its handshake. A connection that has
// done so before keeps its place in the queue.
func (s *Slot) Sent() { s.change(silent, unfinished) }

// Establish says that the handshake is complete, or a request has come: the connection
// keeps its slot now. It reports false when the connection has lost it before.
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

// Rest says that an established connection waits for its next request: it can lose its
// slot from now on.
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

// Release gives the slot back. More than once does no harm.
func (s *Slot) Release() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	if s.state != closed {
		s.slots.remove(s)
	}
}

// Taken reports whether the connection has lost its slot to another, or gave it back.
func (s *Slot) Taken() bool {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return s.state == closed
}
