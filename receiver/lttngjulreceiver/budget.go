// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"fmt"
	"io"
	"sync"
)

// budget bounds what all agents together make the receiver hold: the names of their
// loggers, with those that are just being read.
type budget struct {
	limit int

	mu   sync.Mutex
	used int
}

// memoryError: there is no room for what an agent sends.
type memoryError struct{ limit int }

func (e *memoryError) Error() string {
	return fmt.Sprintf("limits.max_inventory_bytes is reached (%d)", e.limit)
}

// take takes bytes, if there is room.
func (b *budget) take(bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+bytes > b.limit {
		return false
	}
	b.used += bytes
	return true
}

// give gives bytes back.
func (b *budget) give(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
}

// purse is what one agent has of the budget. It belongs to the agent's goroutine.
type purse struct {
	budget *budget
	taken  int
}

func (p *purse) take(bytes int) error {
	if !p.budget.take(bytes) {
		return &memoryError{limit: p.budget.limit}
	}
	p.taken += bytes
	return nil
}

// settle takes or gives back bytes until there are so many.
func (p *purse) settle(bytes int) error {
	if bytes > p.taken {
		return p.take(bytes - p.taken)
	}
	p.budget.give(p.taken - bytes)
	p.taken = bytes
	return nil
}

// metered is what an agent sends, paid for with its purse as it comes: nobody is believed
// how much that will be.
type metered struct {
	from  io.Reader
	purse *purse
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.from.Read(b)
	if short := m.purse.take(n); short != nil {
		return 0, short
	}
	return n, err
}
