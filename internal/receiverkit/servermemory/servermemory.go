// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package servermemory counts what a server takes in the memory budget of the process: what
// is known of it, and the buffers of the connections to it. It knows no protocol. Whoever
// follows the server frees its memory when the account has to be closed: see Memory.Over.
package servermemory

import (
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// Setting is the name of the bound of a server.
const Setting = "limits.max_server_memory"

// Memory is what a server holds in the memory budget. It is for several goroutines.
type Memory struct {
	group *budget.Group
	limit int64
	over  chan Shortage

	mu      sync.Mutex
	account *budget.Account
	// process is what is held of the process, and buffers those of connections.
	process int
	buffers map[*Buffer]bool
}

// Shortage is why the server has to be disconnected that has an account.
type Shortage struct {
	of *budget.Account
	// Why is the error of the account.
	Why error
}

// Buffer is what a connection holds in buffers.
type Buffer struct {
	conn  net.Conn
	bytes int
}

// New opens an account of a group for a server, which may hold at most so many bytes. nil:
// nothing is counted.
func New(group *budget.Group, limit int) *Memory {
	m := &Memory{group: group, limit: int64(limit), over: make(chan Shortage, 1), buffers: map[*Buffer]bool{}}
	m.open()
	return m
}

// open opens an account. The lock is held, or nobody else knows the memory.
func (m *Memory) open() {
	if m.group == nil {
		return // the receiver was not started
	}
	var account *budget.Account
	opened := make(chan struct{})
	account = m.group.Open(budget.Settings{
		Limit: m.limit, Setting: Setting,
		Leave: func(why *budget.Error) {
			<-opened
			m.signal(Shortage{account, why})
		},
	})
	close(opened)
	m.account, m.process = account, 0
}

// signal has the server disconnected.
func (m *Memory) signal(s Shortage) {
	select {
	case m.over <- s:
	default: // it is, or its account has been closed since
		select {
		case <-m.over:
		default:
		}
		select {
		case m.over <- s:
		default:
		}
	}
}

// Hold says how many bytes the process of the server takes.
func (m *Memory) Hold(bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := bytes - m.process
	m.process = bytes
	return m.change(more)
}

// HoldBuffer says how many bytes the buffers of a connection take.
func (m *Memory) HoldBuffer(b *Buffer, bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.buffers[b] {
		return nil // it is closed
	}
	more := bytes - b.bytes
	b.bytes = bytes
	return m.change(more)
}

// change takes or gives bytes. The lock is held.
func (m *Memory) change(more int) error {
	if m.account == nil {
		return nil
	}
	err := m.account.Err()
	if more > 0 && err == nil {
		err = m.account.Take(more)
		if err != nil {
			m.account.Give(-more) // it is there until it is freed
		}
	} else {
		m.account.Give(-more)
	}
	if err != nil {
		m.signal(Shortage{m.account, err})
	}
	return err
}

// Connected begins to count the buffers of a connection.
func (m *Memory) Connected(conn net.Conn) *Buffer {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &Buffer{conn: conn}
	m.buffers[b] = true
	return b
}

// Disconnected gives back the buffers of a connection; nil: there is none.
func (m *Memory) Disconnected(b *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b == nil || !m.buffers[b] {
		return
	}
	delete(m.buffers, b)
	if m.account != nil {
		m.account.Give(b.bytes)
	}
}

// Renew closes an account and opens another one, and closes all connections.
func (m *Memory) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for b := range m.buffers {
		_ = b.conn.Close() // whoever uses it finds that
	}
	clear(m.buffers)
	if m.account != nil {
		m.account.Close()
	}
	m.open()
}

// IsCurrent reports whether a shortage is of the account that there is.
func (m *Memory) IsCurrent(s Shortage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.of == m.account
}

// Close closes the account.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.account != nil {
		m.account.Close()
	}
}

// Over has why the server has to be disconnected: its account gets nothing more. Whoever
// follows it frees what is known of it, and calls Renew.
func (m *Memory) Over() <-chan Shortage { return m.over }

// Add says how many bytes more, or less, the buffers of a connection take.
func (m *Memory) Add(b *Buffer, more int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.buffers[b] {
		return nil // it is closed
	}
	b.bytes += more
	return m.change(more)
}

// HangUp closes all connections.
func (m *Memory) HangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for b := range m.buffers {
		_ = b.conn.Close() // whoever uses it finds that
	}
}
