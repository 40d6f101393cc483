// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package runmemory counts the memory of one run. All of it is in the account of the run in the
// budget of the process. Memory that grows with the data of the agent is bounded by a limit of
// the run too.
package runmemory

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// Memory is the memory of one run, for many goroutines. The limit bounds names, events that
// wait for names, batches that the pipeline refused, and breaks.
//
// At a bound the memory becomes full, for the rest of the run: its account gets no more, its
// names and waiting events are dropped, and its agent is disconnected.
type Memory struct {
	account *budget.Account
	limit   int64
	// limitError is the reason when the limit is reached.
	limitError error
	// bounded are the bytes that count against the limit.
	bounded atomic.Int64

	once sync.Once
	// full is closed when the memory becomes full; reason is set before.
	full   chan struct{}
	reason error
}

// New opens the account of a run. limitError becomes the reason when the run reaches its limit,
// in bytes.
func New(group *budget.Group, limit int, limitError error) *Memory {
	m := &Memory{limit: int64(limit), limitError: limitError, full: make(chan struct{})}
	m.account = group.Open(budget.Settings{Leave: func(err *budget.Error) { m.Fill(err) }})
	return m
}

// Fill makes the memory full, for a reason. Only the first reason counts.
func (m *Memory) Fill(reason error) {
	m.once.Do(func() {
		m.reason = reason
		close(m.full)
	})
}

// Full is closed when the memory becomes full.
func (m *Memory) Full() <-chan struct{} { return m.full }

// IsFull reports whether the memory is full.
func (m *Memory) IsFull() bool {
	select {
	case <-m.full:
		return true
	default:
		return false
	}
}

// Reason is the bound that made the memory full.
func (m *Memory) Reason() error { return m.reason }

// ReachedOwnLimit reports whether the limit of the run made the memory full. Otherwise the
// budget of the process did.
func (m *Memory) ReachedOwnLimit() bool { return m.reason != nil && m.reason == m.limitError }

// Bounded is how many bytes count against the limit of the run.
func (m *Memory) Bounded() int64 { return m.bounded.Load() }

// Held is how many bytes the run holds of the process.
func (m *Memory) Held() int64 { return m.account.Used() }

// Require reserves bytes, all or none, that the run needs: without them the memory becomes full.
func (m *Memory) Require(bytes int) bool {
	if m.bounded.Add(int64(bytes)) > m.limit {
		m.bounded.Add(-int64(bytes))
		m.Fill(m.limitError)
		return false
	}
	return m.reserveOfProcess(bytes)
}

// Reserve reserves bytes, all or none, that the run can go on without.
func (m *Memory) Reserve(bytes int) bool {
	if m.bounded.Add(int64(bytes)) > m.limit {
		m.bounded.Add(-int64(bytes))
		return false
	}
	return m.reserveOfProcess(bytes)
}

// ReserveOfHalf reserves bytes, all or none, if at most half of the limit is used before. The
// other half is for what the run needs.
func (m *Memory) ReserveOfHalf(bytes int) bool {
	if m.bounded.Load() > m.limit/2 {
		return false
	}
	return m.Reserve(bytes)
}

// ReserveOfHalfIfRoom is ReserveOfHalf, but no run is disconnected to make room.
func (m *Memory) ReserveOfHalfIfRoom(bytes int) bool {
	if m.IsFull() || m.bounded.Load() > m.limit/2 {
		return false
	}
	if m.bounded.Add(int64(bytes)) > m.limit || !m.account.ReserveIfRoom(bytes) {
		m.bounded.Add(-int64(bytes))
		return false
	}
	return true
}

// reserveOfProcess reserves bytes in the budget of the process that are in bounded.
func (m *Memory) reserveOfProcess(bytes int) bool {
	if m.IsFull() || !m.reserveInAccount(bytes) {
		m.bounded.Add(-int64(bytes))
		return false
	}
	return true
}

func (m *Memory) reserveInAccount(bytes int) bool {
	err := m.account.Reserve(bytes)
	if err == nil {
		return true
	}
	if full := (*budget.Error)(nil); errors.As(err, &full) {
		m.Fill(full)
	}
	return false
}

// Return returns bytes that were reserved.
func (m *Memory) Return(bytes int) {
	m.bounded.Add(-int64(bytes))
	m.account.Release(bytes)
}

// Resize counts buffers, which the limit does not bound: counted of their bytes are in the
// account, and they have so many bytes now. It returns how many bytes are counted afterwards:
// as many as before, if there is no memory for more.
func (m *Memory) Resize(counted, bytes int) int {
	switch {
	case bytes < counted:
		m.account.Release(counted - bytes)
	case bytes > counted && !m.reserveInAccount(bytes-counted):
		return counted
	}
	return bytes
}

// Close returns everything.
func (m *Memory) Close() { m.account.Close() }
