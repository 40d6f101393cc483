// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

const (
	// runBytes is about what a run holds beside what its agent sends: its structures,
	// its resource, and the stacks of its goroutines.
	runBytes = 24 << 10
	// connectionBytes is about what any open connection holds: its structures, its
	// buffer until it has said what it is or while it lingers, and the stack of its
	// goroutine.
	connectionBytes = 12 << 10
	// readerBytes is about what a data connection holds beside its buffers, such as the stack of
	// the coroutine that reads it.
	readerBytes = 8 << 10
)

// memory is what a run holds. All of it is in the run's account in the budget of the
// process; what grows by what the agent sends (names, events that wait for names,
// batches that the pipeline refused, breaks) is bounded by limits.max_run_memory too. It
// is for many goroutines.
//
// When a bound is reached, the memory is full for the rest of the run: its account gets
// no more, its names and waiting events are dropped, and its agent is left.
type memory struct {
	account *budget.Account
	limit   int64
	// used is what is bounded by limit.
	used atomic.Int64

	once sync.Once
	// full is closed when the run has to leave; why is set before.
	full chan struct{}
	why  error
}

// newMemory opens the account of a run.
func newMemory(group *budget.Group, limit int) *memory {
	m := &memory{limit: int64(limit), full: make(chan struct{})}
	m.account = group.Open(budget.Settings{Leave: func(err *budget.Error) { m.fill(err) }})
	return m
}

// fill says that the run has to leave, and why. Only the first reason counts.
func (m *memory) fill(why error) {
	m.once.Do(func() {
		m.why = why
		close(m.full)
	})
}

// isFull reports whether the run has to leave.
func (m *memory) isFull() bool { return isClosed(m.full) }

// reason is the bound that was reached, for metrics.
func (m *memory) reason() string {
	if own := (*limitError)(nil); errors.As(m.why, &own) {
		return "max_run_memory"
	}
	return handover.DroppedMemory
}

// take takes bytes, all or none, for what the run cannot go on without: without them it
// has to leave.
func (m *memory) take(bytes int) bool {
	if m.used.Add(int64(bytes)) > m.limit {
		m.used.Add(-int64(bytes))
		m.fill(&limitError{setting: settingMaxRunMemory, limit: int(m.limit)})
		return false
	}
	return m.takeFromProcess(bytes)
}

// tryTake takes bytes, all or none, for what the run can go on without.
func (m *memory) tryTake(bytes int) bool {
	if m.used.Add(int64(bytes)) > m.limit {
		m.used.Add(-int64(bytes))
		return false
	}
	return m.takeFromProcess(bytes)
}

// takeOfHalf takes bytes, all or none, if no more than half of the limit is used then:
// the other half is for what the run cannot go on without.
func (m *memory) takeOfHalf(bytes int) bool {
	if m.used.Load() > m.limit/2 {
		return false
	}
	return m.tryTake(bytes)
}

// takeOfHalfIfRoom is takeOfHalf that nobody has to leave for.
func (m *memory) takeOfHalfIfRoom(bytes int) bool {
	if m.isFull() || m.used.Load() > m.limit/2 {
		return false
	}
	if m.used.Add(int64(bytes)) > m.limit || !m.account.TakeIfRoom(bytes) {
		m.used.Add(-int64(bytes))
		return false
	}
	return true
}

// takeFromProcess takes from the process what is in used.
func (m *memory) takeFromProcess(bytes int) bool {
	if m.isFull() || !m.takeAccount(bytes) {
		m.used.Add(-int64(bytes))
		return false
	}
	return true
}

func (m *memory) takeAccount(bytes int) bool {
	err := m.account.Take(bytes)
	if err == nil {
		return true
	}
	if full := (*budget.Error)(nil); errors.As(err, &full) {
		m.fill(full)
	}
	return false
}

// give gives bytes back.
func (m *memory) give(bytes int) {
	m.used.Add(-int64(bytes))
	m.account.Give(bytes)
}

// resize says that buffers, of which counted bytes are in the account, have so many
// bytes now. It returns how many are counted then: as many as before, if there is no
// memory for more.
func (m *memory) resize(counted, bytes int) int {
	switch {
	case bytes < counted:
		m.account.Give(counted - bytes)
	case bytes > counted && !m.takeAccount(bytes-counted):
		return counted
	}
	return bytes
}

// close gives everything back.
func (m *memory) close() { m.account.Close() }

// connectionMemory is what open connections hold, whatever they are, beside the memory of
// runs. Its account gives way to nobody: limits.max_connections bounds it.
type connectionMemory struct {
	account *budget.Account

	mu   sync.Mutex
	open int64
}

func newConnectionMemory(group *budget.Group) *connectionMemory {
	return &connectionMemory{account: group.Open(budget.Settings{})}
}

// hold counts a connection until release is called. Nil counts nothing.
func (c *connectionMemory) hold() (release func()) {
	if c == nil {
		return func() {}
	}
	c.change(1)
	return func() { c.change(-1) }
}

// now is how many connections are open.
func (c *connectionMemory) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// change counts connections that were opened or closed. The lock is held while the account is
// set, so that an older number never replaces a newer one.
func (c *connectionMemory) change(connections int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += connections
	c.account.Set(c.open * connectionBytes)
}

func (c *connectionMemory) close() { c.account.Close() }
