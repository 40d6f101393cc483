// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"math"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// memory is the processor's account in the memory budget of the process. It has the memory of
// all streams, of held spans, and of reservations for calls under way.
type memory struct {
	// account is nil before the start. Then the budget demands nothing.
	account *budget.Account
	// asked has room for one demand of the budget.
	asked chan struct{}
	// done is closed when the goroutine of giveWay has ended; nil before the start.
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

// sum is the processor's memory, in bytes.
func (m *memory) sum(p *pairer) int64 {
	return p.accounts.bytes.Load() + p.delivery.heldBytes.Load() + p.reserved.Load()
}

// excess reports the processor's memory to the budget, and returns the bytes to free.
func (m *memory) excess(p *pairer) int64 {
	if m.account == nil {
		return 0
	}
	return m.account.Set(m.sum(p))
}

// close closes the account.
func (m *memory) close() {
	if m.account != nil {
		m.account.Close()
	}
}

// giveWay frees memory at each demand of the budget, until ctx is done. The timers do not do
// that, because they may wait for the next component.
func (p *pairer) giveWay(ctx context.Context) {
	defer close(p.memory.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.memory.asked:
			p.lighten(ctx, math.MaxInt64)
		}
	}
}
