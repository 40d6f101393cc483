// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
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

// newRunMemory opens the memory of a run. Its limit is limits.max_run_memory, in bytes.
func newRunMemory(group *budget.Group, limit int) *runmemory.Memory {
	return runmemory.New(group, limit, &limitError{setting: settingMaxRunMemory, limit: limit})
}

// memoryReason is the bound that made the memory of a run full, for metrics.
func memoryReason(m *runmemory.Memory) string {
	if m.ReachedOwnLimit() {
		return "max_run_memory"
	}
	return handover.DroppedMemory
}

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
