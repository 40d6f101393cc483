// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// connectionBytes is the approximate memory of any open connection: its structures, its buffer
// before the handshake or while it lingers, and the stack of its goroutine.
const connectionBytes = 12 << 10

// newRunMemory opens the memory of a run. Its limit is limits.max_run_memory, in bytes.
func newRunMemory(group *budget.Group, limit int) *runmemory.Memory {
	return runmemory.New(group, limit, &limitError{setting: settingMaxRunMemory, limit: limit})
}

// connectionMemory is the memory of open connections of all kinds, without the memory of runs. Its
// account frees nothing for others: limits.max_connections bounds it.
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

// now returns how many connections are open.
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
