// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"io"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// nameMemory bounds the names of loggers of all agents, including lists that are being read. Each agent also has an
// account in the memory budget of the process. At either bound the agent that holds most is closed.
type nameMemory struct {
	limit int

	// accounts has an account for each agent; nil: no agent has one, as in tests.
	accounts *budget.Group

	mu      sync.Mutex
	used    int
	charges map[*charge]bool
}

// memoryError: there is no memory for an agent's data.
type memoryError struct{ err error }

func (e *memoryError) Error() string { return e.err.Error() }

func (e *memoryError) Unwrap() error { return e.err }

func newNameMemory(limit int, accounts *budget.Group) *nameMemory {
	return &nameMemory{limit: limit, accounts: accounts, charges: map[*charge]bool{}}
}

// open returns the charge of an agent. If the agent has to be closed, any goroutine calls interrupt, which must not
// block.
func (m *nameMemory) open(interrupt func()) *charge {
	p := &charge{memory: m, interrupt: interrupt}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charges[p] = true
	if m.accounts != nil {
		p.account = m.accounts.Open(budget.Settings{Leave: func(why *budget.Error) { p.closeAgent(why) }})
	}
	return p
}

// largest returns the largest charge of agents that are not closing, and the sum of these charges. The caller holds the
// lock.
func (m *nameMemory) largest() (most *charge, all int) {
	for p := range m.charges {
		if p.closeReason() != nil {
			continue
		}
		if all += p.held; most == nil || p.held > most.held {
			most = p
		}
	}
	return most, all
}

// overdraft: one part in this many of the limit may be held beyond it until an agent that is being closed has freed its
// memory.
const overdraft = 8

// change changes the bytes of a charge. If all charges exceed the limit, the agent that holds most is closed. The error
// reports that it is this agent.
func (m *nameMemory) change(p *charge, more int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used += more
	p.held += more
	if more <= 0 || m.used <= m.limit {
		return nil
	}
	most, all := m.largest()
	if most == nil {
		most = p
	}
	why := &memoryError{fmt.Errorf("limits.max_inventory_bytes is reached (%d): the agent holds most of it (%d)", m.limit, most.held)}
	switch {
	case all > m.limit && most == p:
		return why
	case all > m.limit:
		most.closeAgent(why.err)
	}
	if m.used > m.limit+m.limit/overdraft && p.held > m.limit/len(m.charges) {
		return &memoryError{fmt.Errorf("limits.max_inventory_bytes is reached (%d), and the agent holds %d of it", m.limit, p.held)}
	}
	return nil
}

// charge is the memory of one agent. The session's goroutine owns it, except closeAgent and closeReason. The lock of
// nameMemory guards held.
type charge struct {
	memory    *nameMemory
	account   *budget.Account
	interrupt func()
	held      int

	mu      sync.Mutex
	closing error
}

// closeAgent makes the session close the agent's connection.
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

// closeReason returns the reason if the agent has to be closed.
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
	if err := p.memory.change(p, bytes); err != nil {
		_ = p.memory.change(p, -bytes)
		return err
	}
	if p.account == nil {
		return nil
	}
	if err := p.account.Reserve(bytes); err != nil {
		_ = p.memory.change(p, -bytes)
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
	_ = p.memory.change(p, -less) // freeing always succeeds
	if p.account != nil {
		p.account.Release(less)
	}
	return nil
}

// close frees all bytes.
func (p *charge) close() {
	_ = p.holdExactly(0)
	if p.account != nil {
		p.account.Close()
	}
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	delete(p.memory.charges, p)
}

// metered reads from an agent and charges each byte as it arrives, because a size in a message can't be trusted.
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
