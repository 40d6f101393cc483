// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"container/heap"
	"net"
	"net/netip"
)

// address has the connections of one peer address. The lock of its Slots guards it.
type address struct {
	key string
	// open counts its connections in all states.
	open int
	// silent have sent nothing; unfinished have sent a part, or wait for a next request.
	silent, unfinished queue
	// place is its index in the heap; -1: it is not in the heap.
	place int
}

// networkBits is the part of an IPv6 address that a provider assigns to one customer.
const networkBits = 64

// keyOf returns the address of a connection's peer without its port, and for IPv6 only the network.
func keyOf(conn net.Conn) string {
	remote := conn.RemoteAddr()
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return remote.Network()
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if ip.Is6() && !ip.IsLoopback() {
		return netip.PrefixFrom(ip, networkBits).Masked().String()
	}
	return ip.String()
}

// at returns the address with a key. The lock is held.
func (s *Slots) at(key string) *address {
	at := s.addresses[key]
	if at == nil {
		at = &address{key: key, place: -1}
		s.addresses[key] = at
	}
	return at
}

func (s *Slots) dropIfEmpty(at *address) {
	if at.open == 0 {
		delete(s.addresses, at.key)
	}
}

// waiting returns the number of its connections that can lose their slot.
func (a *address) waiting() int { return a.silent.n + a.unfinished.n }

// oldest returns the number of the oldest of them.
func (a *address) oldest() uint64 {
	switch {
	case a.silent.first == nil:
		return a.unfinished.first.number
	case a.unfinished.first == nil:
		return a.silent.first.number
	default:
		return min(a.silent.first.number, a.unfinished.first.number)
	}
}

// queue returns the queue of a state; nil: it has none.
func (a *address) queue(of state) *queue {
	switch of {
	case silent:
		return &a.silent
	case unfinished:
		return &a.unfinished
	default:
		return nil
	}
}

// queue has connections, the oldest first.
type queue struct {
	first, last *Slot
	n           int
}

func (q *queue) push(s *Slot) {
	s.prev, s.next = q.last, nil
	if q.last == nil {
		q.first = s
	} else {
		q.last.next = s
	}
	q.last = s
	q.n++
}

func (q *queue) remove(s *Slot) {
	if s.prev == nil {
		q.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		q.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	q.n--
}

// crowded is a heap of addresses. The first has the most connections that can lose their slot. Of equal ones, it has the
// oldest connection.
type crowded []*address

var _ heap.Interface = (*crowded)(nil)

func (c *crowded) first() *address {
	if len(*c) == 0 {
		return nil
	}
	return (*c)[0]
}

func (c crowded) Len() int { return len(c) }

func (c crowded) Less(i, j int) bool {
	if a, b := c[i].waiting(), c[j].waiting(); a != b {
		return a > b
	}
	return c[i].oldest() < c[j].oldest()
}

func (c crowded) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}

// Push is for the package heap.
func (c *crowded) Push(x any) {
	at := x.(*address)
	at.place = len(*c)
	*c = append(*c, at)
}

// Pop is for the package heap.
func (c *crowded) Pop() any {
	last := len(*c) - 1
	at := (*c)[last]
	at.place = -1
	(*c)[last] = nil
	*c = (*c)[:last]
	return at
}
