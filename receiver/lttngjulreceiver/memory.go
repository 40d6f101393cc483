// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"fmt"
	"io"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// inventories bound the names of loggers of all agents in memory, including lists that are
// being read. Each agent also has an account in the memory budget of the process. At either
// bound the receiver closes the agent that holds most.
type inventories struct {
	limit int

	// accounts has an account for each agent; nil: none, as in tests.
	accounts *budget.Group

	mu      sync.Mutex
	used    int
	charges map[*charge]bool
}

// memoryError: there is no memory for data of an agent.
type memoryError struct{ err error }

func (e *memoryError) Error() string { return e.err.Error() }

func (e *memoryError) Unwrap() error { return e.err }

func newInventories(limit int, accounts *budget.Group) *inventories {
	return &inventories{limit: limit, accounts: accounts, charges: map[*charge]bool{}}
}

// open returns the charge of an agent. interrupt is called, by any goroutine, if the agent
// has to be closed. It must not block.
func (i *inventories) open(leave func()) *charge {
	p := &charge{inventories: i, interrupt: leave}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.charges[p] = true
	if i.accounts != nil {
		p.account = i.accounts.Open(budget.Settings{Leave: func(why *budget.Error) { p.closeAgent(why) }})
	}
	return p
}

// largest returns the charge that holds most, of those that aren't closing, and the sum of
// these. The lock is held.
func (i *inventories) largest() (most *charge, all int) {
	for p := range i.charges {
		if p.closeReason() != nil {
			continue
		}
		if all += p.held; most == nil || p.held > most.held {
			most = p
		}
	}
	return most, all
}

// overdraft is the share of the limit that may be held beyond it until an agent that is being
// closed has given back what it holds: one part of so many.
const overdraft = 8

// hold changes the bytes of a charge. If all charges exceed the limit, the agent that holds
// most is closed; the error says that it is this agent.
func (i *inventories) hold(p *charge, more int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.used += more
	p.held += more
	if more <= 0 || i.used <= i.limit {
		return nil
	}
	most, all := i.largest()
	if most == nil {
		most = p
	}
	why := &memoryError{fmt.Errorf("limits.max_inventory_bytes is reached (%d): the agent holds most of it (%d)", i.limit, most.held)}
	switch {
	case all > i.limit && most == p:
		return why
	case all > i.limit:
		most.closeAgent(why.err)
	}
	if i.used > i.limit+i.limit/overdraft && p.held > i.limit/len(i.charges) {
		return &memoryError{fmt.Errorf("limits.max_inventory_bytes is reached (%d), and the agent holds %d of it", i.limit, p.held)}
	}
	return nil
}

// charge is the memory of one agent. The agent's goroutine owns it, except closeAgent and
// closeReason. The lock of inventories guards held.
type charge struct {
	inventories *inventories
	account     *budget.Account
	interrupt   func()
	held        int

	mu      sync.Mutex
	closing error
}

// closeAgent has the agent closed.
func (p *charge) closeAgent(why error) {
	p.mu.Lock()
	first := p.closing == nil
	if first {
		p.closing = &memoryError{why}
	}
	p.mu.Unlock()
	if first {
		p.interrupt()
	}
}

// closeReason returns why the agent has to be closed; nil: it hasn't.
func (p *charge) closeReason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}

// hold adds bytes, or returns an error.
func (p *charge) hold(bytes int) error {
	if why := p.closeReason(); why != nil {
		return why
	}
	if err := p.inventories.hold(p, bytes); err != nil {
		_ = p.inventories.hold(p, -bytes)
		return err
	}
	if p.account == nil {
		return nil
	}
	if err := p.account.Take(bytes); err != nil {
		_ = p.inventories.hold(p, -bytes)
		return &memoryError{err}
	}
	return nil
}

// holdExactly adds or frees bytes until the charge has this many.
func (p *charge) holdExactly(bytes int) error {
	if bytes > p.held {
		return p.hold(bytes - p.held)
	}
	less := p.held - bytes
	_ = p.inventories.hold(p, -less) // giving back always succeeds
	if p.account != nil {
		p.account.Give(less)
	}
	return nil
}

// close frees all bytes.
func (p *charge) close() {
	_ = p.holdExactly(0)
	if p.account != nil {
		p.account.Close()
	}
	i := p.inventories
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.charges, p)
}

// metered reads from an agent and charges each byte as it arrives, because a size that an
// agent sends can't be trusted.
type metered struct {
	from   io.Reader
	charge *charge
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.from.Read(b)
	if short := m.charge.hold(n); short != nil {
		return 0, short
	}
	return n, err
}
