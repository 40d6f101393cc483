// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"fmt"
	"io"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// inventories bound what all agents together make the receiver hold: the names of their
// loggers, with those that are just being read. Each agent has an account of the process's
// memory budget, too. At either bound the agent that holds most is closed.
type inventories struct {
	limit int

	// accounts has an account for each agent; nil: none, as in tests.
	accounts *budget.Group

	mu     sync.Mutex
	used   int
	purses map[*purse]bool
}

// memoryError: there is no room for what an agent sends.
type memoryError struct{ err error }

func (e *memoryError) Error() string { return e.err.Error() }

func (e *memoryError) Unwrap() error { return e.err }

func newInventories(limit int, accounts *budget.Group) *inventories {
	return &inventories{limit: limit, accounts: accounts, purses: map[*purse]bool{}}
}

// open gives an agent a purse. leave is called, by any goroutine, when the agent has to be
// closed: it may not block.
func (i *inventories) open(leave func()) *purse {
	p := &purse{inventories: i, leave: leave}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.purses[p] = true
	if i.accounts != nil {
		p.account = i.accounts.Open(budget.Settings{Leave: func(why *budget.Error) { p.mustLeave(why) }})
	}
	return p
}

// largest is the purse that holds most, of those that are not leaving, and how much all of
// these hold. The lock is held.
func (i *inventories) largest() (most *purse, all int) {
	for p := range i.purses {
		if p.why() != nil {
			continue
		}
		if all += p.taken; most == nil || p.taken > most.taken {
			most = p
		}
	}
	return most, all
}

// overdraft is the share of the limit that may be held beyond it until an agent that is being
// closed has given back what it holds: one part of so many.
const overdraft = 8

// change changes what a purse has. Where that is too much for all together, the agent that
// has most is closed: the error is that it is this one.
func (i *inventories) change(p *purse, more int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.used += more
	p.taken += more
	if more <= 0 || i.used <= i.limit {
		return nil
	}
	most, all := i.largest()
	if most == nil {
		most = p
	}
	why := &memoryError{fmt.Errorf("limits.max_inventory_bytes is reached (%d): the agent holds most of it (%d)", i.limit, most.taken)}
	switch {
	case all > i.limit && most == p:
		return why
	case all > i.limit:
		most.mustLeave(why.err)
	}
	if i.used > i.limit+i.limit/overdraft && p.taken > i.limit/len(i.purses) {
		return &memoryError{fmt.Errorf("limits.max_inventory_bytes is reached (%d), and the agent holds %d of it", i.limit, p.taken)}
	}
	return nil
}

// purse is what one agent has of the inventories. It belongs to the agent's goroutine, but
// mustLeave and why; what is taken is guarded by the inventories' lock.
type purse struct {
	inventories *inventories
	account     *budget.Account
	leave       func()
	taken       int

	mu      sync.Mutex
	leaving error
}

// mustLeave has the agent closed.
func (p *purse) mustLeave(why error) {
	p.mu.Lock()
	first := p.leaving == nil
	if first {
		p.leaving = &memoryError{why}
	}
	p.mu.Unlock()
	if first {
		p.leave()
	}
}

// why is why the agent has to be closed; nil: it has not.
func (p *purse) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving
}

func (p *purse) take(bytes int) error {
	if why := p.why(); why != nil {
		return why
	}
	if err := p.inventories.change(p, bytes); err != nil {
		_ = p.inventories.change(p, -bytes)
		return err
	}
	if p.account == nil {
		return nil
	}
	if err := p.account.Take(bytes); err != nil {
		_ = p.inventories.change(p, -bytes)
		return &memoryError{err}
	}
	return nil
}

// settle takes or gives back bytes until there are so many.
func (p *purse) settle(bytes int) error {
	if bytes > p.taken {
		return p.take(bytes - p.taken)
	}
	less := p.taken - bytes
	_ = p.inventories.change(p, -less) // giving back always succeeds
	if p.account != nil {
		p.account.Give(less)
	}
	return nil
}

// close gives everything back.
func (p *purse) close() {
	_ = p.settle(0)
	if p.account != nil {
		p.account.Close()
	}
	i := p.inventories
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.purses, p)
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
