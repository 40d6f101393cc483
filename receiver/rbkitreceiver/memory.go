// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"errors"
	"net"
	"sync"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/budget"
)

// What a server has in memory is in an account of the process's memory budget, with
// limits.max_server_memory as its own bound. Where either is reached the server is
// disconnected. Its memory is freed first: what is known of its process ends as if it had
// ended, and is counted anew. It is connected to again after a pause.

const (
	// settingMemory is the bound of a server.
	settingMemory = "limits.max_server_memory"

	// What things take in memory, about, with their place in a map.
	bytesOfServer    = 64 << 10
	bytesOfTracked   = 36
	bytesOfName      = 96
	bytesOfSite      = 64
	bytesOfReference = 16
	bytesOfStackSeen = 80
	bytesOfPlace     = 48
)

// memory is what a server holds in the memory budget. It is for several goroutines.
type memory struct {
	group *budget.Group
	limit int64
	// over has why the server has to be disconnected.
	over chan shortage

	mu      sync.Mutex
	account *budget.Account
	// process is what is held of the process, and buffers those of connections.
	process int
	buffers map[*buffer]bool
}

// shortage is why the server has to be disconnected that has an account.
type shortage struct {
	of  *budget.Account
	why error
}

// buffer is what a connection holds in buffers.
type buffer struct {
	conn  net.Conn
	bytes int
}

func newMemory(group *budget.Group, limit int) *memory {
	m := &memory{group: group, limit: int64(limit), over: make(chan shortage, 1), buffers: map[*buffer]bool{}}
	m.open()
	return m
}

// open opens an account. The lock is held, or nobody else knows the memory.
func (m *memory) open() {
	if m.group == nil {
		return // the receiver was not started
	}
	var account *budget.Account
	opened := make(chan struct{})
	account = m.group.Open(budget.Settings{
		Limit: m.limit, Setting: settingMemory,
		Leave: func(why *budget.Error) {
			<-opened
			m.signal(shortage{account, why})
		},
	})
	close(opened)
	m.account, m.process = account, 0
}

// signal has the server disconnected.
func (m *memory) signal(s shortage) {
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

// hold says how many bytes the process of the server takes.
func (m *memory) hold(bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := bytes - m.process
	m.process = bytes
	return m.change(more)
}

// holdBuffer says how many bytes the buffers of a connection take.
func (m *memory) holdBuffer(b *buffer, bytes int) error {
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
func (m *memory) change(more int) error {
	if m.account == nil {
		return nil
	}
	err := m.account.Err()
	if more > 0 && err == nil {
		err = m.account.Take(more)
	} else {
		m.account.Give(-more)
	}
	if err != nil {
		m.account.Give(-max(0, more)) // it is there until it is freed
		m.signal(shortage{m.account, err})
	}
	return err
}

// connected begins to count the buffers of a connection.
func (m *memory) connected(conn net.Conn) *buffer {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &buffer{conn: conn}
	m.buffers[b] = true
	return b
}

// disconnected gives back the buffers of a connection; nil: there is none.
func (m *memory) disconnected(b *buffer) {
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

// renew closes an account and opens another one, and closes all connections.
func (m *memory) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for b := range m.buffers {
		_ = b.conn.Close() // whoever uses it finds that
	}
	clear(m.buffers)
	m.account.Close()
	m.open()
}

// isCurrent reports whether a shortage is of the account that there is.
func (m *memory) isCurrent(s shortage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.of == m.account
}

// close closes the account.
func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.account != nil {
		m.account.Close()
	}
}

// release frees the server's memory whenever it has to, until the context ends.
func (s *server) release(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case shortage := <-s.memory.over:
			if s.memory.isCurrent(shortage) {
				s.free(shortage.why)
			}
		}
	}
}

// free ends what is known of the server's process, and its connections.
func (s *server) free(why error) {
	s.mu.Lock()
	if s.process != nil {
		s.end()
		s.renew(s.who)
	}
	dropped := len(s.meeting.kept)
	s.meeting.kept, s.meeting.size = nil, 0
	s.memory.renew()
	s.mu.Unlock()
	reason := reasonBudget
	if short := (*budget.Error)(nil); errors.As(why, &short) && short.Setting == settingMemory {
		reason = reasonServer
	}
	s.env.telemetry.disconnected(reason)
	if since, say := s.full.Say(s.env.now()); say {
		s.logger.Warn("The server is disconnected for now: it holds too much memory. What was counted of it begins anew",
			zap.Error(why), zap.Int("messages_dropped", dropped), zap.Int("times_since_last_line", since))
	}
}

// Why a server is disconnected.
const (
	reasonBudget = "memory_budget"
	reasonServer = "max_server_memory"
)

// held counts what the server takes in memory, beside the buffers of its connections. The lock
// is held.
func (s *server) held() error {
	bytes := bytesOfServer + s.meeting.size
	if s.process != nil {
		bytes += s.process.held()
	}
	return s.memory.hold(bytes)
}

// held is how many bytes the process takes, about.
func (p *process) held() int {
	bytes := p.classes.bytes + p.allocations.files.bytes + bytesOfSite*len(p.allocations.sites) + p.objects.tracked.held()
	for _, c := range [...]counts{p.objects.created, p.objects.destroyed, p.dumps.live.objects, p.dumps.live.bytes} {
		bytes += 8 * cap(c)
	}
	if d := p.dumps.open; d != nil {
		bytes += 8 * (cap(d.live.objects) + cap(d.live.bytes))
		if r := &d.references; r.seen != nil {
			bytes += 8*len(r.seen.slots) + bytesOfReference*cap(r.waiting)
		}
	}
	if s := &p.samples; s.dictionary != nil {
		bytes += s.parcel.bytes + s.dictionary.bytes + s.toldBytes + bytesOfStackSeen*len(s.byStack)
	}
	if o := p.snapshots.open; o != nil {
		bytes += o.parcel.bytes + o.dictionary.bytes + bytesOfStackSeen*len(o.stacks) + bytesOfPlace*(len(o.placed)+len(o.samples))
	}
	return bytes + p.records.bytes
}

// held is how many bytes the objects take, about. Generations keep the space that they had.
func (t *tracked) held() int {
	t.most[0], t.most[1] = max(t.most[0], len(t.young)), max(t.most[1], len(t.old))
	return bytesOfTracked * (t.most[0] + t.most[1])
}
