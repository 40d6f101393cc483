// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package servermemory counts the memory of a server in the memory budget of the collector: the state of its traced
// processes, and the buffers of its connections. It knows no protocol. The receiver frees the memory when Memory.Over has
// a shortage.
package servermemory

import (
	"io"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// Setting is the name of the bound of a server.
const Setting = "limits.max_server_memory"

// Memory is the account of a server in the memory budget. Its methods can be called from several goroutines.
type Memory struct {
	group *budget.Group
	limit int64
	over  chan Shortage

	mu      sync.Mutex
	account *budget.Account
	// process has the bytes of the state of all traced processes. buffers has the open connections.
	process int
	buffers map[*Buffer]bool
}

// Shortage is a reason to disconnect the server of an account.
type Shortage struct {
	of *budget.Account
	// Why is the error of the account.
	Why error
}

// Buffer has the bytes of a connection's buffers.
type Buffer struct {
	conn  io.Closer
	bytes int
}

// New opens an account in a group for a server, with a limit in bytes. With a nil group it counts nothing.
func New(group *budget.Group, limit int) *Memory {
	m := &Memory{group: group, limit: int64(limit), over: make(chan Shortage, 1), buffers: map[*Buffer]bool{}}
	m.open()
	return m
}

// open opens an account. The lock is held, except in New.
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

// signal sends a shortage to Over, and replaces an older one.
func (m *Memory) signal(s Shortage) {
	select {
	case m.over <- s:
	default: // the older one may be of a closed account
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

// Hold sets the bytes of the state of all traced processes. It returns an error if the budget or the limit has no room.
func (m *Memory) Hold(bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := bytes - m.process
	m.process = bytes
	return m.change(more)
}

// HoldBuffer sets the bytes of a connection's buffers. It returns an error if the budget or the limit has no room.
func (m *Memory) HoldBuffer(b *Buffer, bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.buffers[b] {
		return nil // the connection is closed
	}
	more := bytes - b.bytes
	b.bytes = bytes
	return m.change(more)
}

// change reserves bytes in the account or, if negative, releases them. The lock is held.
func (m *Memory) change(more int) error {
	if m.account == nil {
		return nil
	}
	err := m.account.Err()
	if more > 0 && err == nil {
		err = m.account.Reserve(more)
		if err != nil {
			m.account.Release(-more) // the bytes exist until they are freed
		}
	} else {
		m.account.Release(-more)
	}
	if err != nil {
		m.signal(Shortage{m.account, err})
	}
	return err
}

// Connected returns the Buffer of a new connection.
func (m *Memory) Connected(conn io.Closer) *Buffer {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &Buffer{conn: conn}
	m.buffers[b] = true
	return b
}

// Disconnected releases the buffers of a connection. b may be nil.
func (m *Memory) Disconnected(b *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b == nil || !m.buffers[b] {
		return
	}
	delete(m.buffers, b)
	if m.account != nil {
		m.account.Release(b.bytes)
	}
}

// Renew closes all connections, and replaces the account by a new one.
func (m *Memory) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for b := range m.buffers {
		_ = b.conn.Close() // its reader gets an error
	}
	clear(m.buffers)
	if m.account != nil {
		m.account.Close()
	}
	m.open()
}

// IsCurrent reports whether a shortage is of the current account.
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

// Over returns a channel of shortages. After a shortage the account accepts no more bytes. The receiver then
// disconnects the server, frees its state, and calls Renew.
func (m *Memory) Over() <-chan Shortage { return m.over }

// Add changes the bytes of a connection's buffers by more, which may be negative.
func (m *Memory) Add(b *Buffer, more int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.buffers[b] {
		return nil // the connection is closed
	}
	b.bytes += more
	return m.change(more)
}

// HangUp closes all connections.
func (m *Memory) HangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for b := range m.buffers {
		_ = b.conn.Close() // its reader gets an error
	}
}
