// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"math"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// memory is the processor's account in the memory budget of the process. It has what all
// streams hold, the finished spans that are held, and what is reserved for calls under way.
type memory struct {
	// account is nil before the start: then nothing is asked for.
	account *budget.Account
	// asked has room for one: the budget asks for memory.
	asked chan struct{}
	// done is closed when nobody waits for asked any more; nil before the start.
	done chan struct{}
}

// open opens the account. The budget asks in other components' goroutines.
func (m *memory) open(b *budget.Budget, group string) {
	m.asked, m.done = make(chan struct{}, 1), make(chan struct{})
	m.account = b.Group(group).Open(budget.Settings{Shrink: func(int64) {
		select {
		case m.asked <- struct{}{}:
		default:
		}
	}})
}

// sum is what the processor holds, in bytes.
func (m *memory) sum(p *pairer) int64 {
	return p.accounts.bytes.Load() + p.delivery.heldBytes.Load() + p.reserved.Load()
}

// excess reports what the processor holds to the budget, and gives what it has to free.
func (m *memory) excess(p *pairer) int64 {
	if m.account == nil {
		return 0
	}
	return m.account.Set(m.sum(p))
}

// close gives everything back.
func (m *memory) close() {
	if m.account != nil {
		m.account.Close()
	}
}

// giveWay gives memory back whenever the budget asks for it, until ctx is done. It is not
// done by the timers, which may be waiting for the next component.
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
