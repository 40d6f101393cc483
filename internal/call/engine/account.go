// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// memory is the engine's account in the memory budget of the process. It has the memory of
// all streams, of held spans, and of reservations for calls under way.
type memory struct {
	// account is nil before the start. Then the budget demands nothing.
	account *budget.Account
	// asked has room for one demand of the budget.
	asked chan struct{}
	// done is closed when the goroutine that frees memory has ended; nil before the start.
	done chan struct{}
}

// open opens the account. The budget makes its demands in goroutines of other components.
func (m *memory) open(b *budget.Budget, group string) {
	m.asked, m.done = make(chan struct{}, 1), make(chan struct{})
	m.account = b.Group(group).Open(budget.Settings{Shrink: func(int64) {
		select {
		case m.asked <- struct{}{}:
		default:
		}
	}})
}

// excess reports the engine's memory to the budget, and returns the bytes to free.
func (m *memory) excess(bytes int64) int64 {
	if m.account == nil {
		return 0
	}
	return m.account.Set(bytes)
}

// close closes the account.
func (m *memory) close() {
	if m.account != nil {
		m.account.Close()
	}
}
