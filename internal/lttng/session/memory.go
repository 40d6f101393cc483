// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// memory is the account of a session in the memory budget of the collector. The session's goroutine uses it. If the
// budget needs memory, the session is detached in these steps:
//
//  1. Stop reading the session. A pending request may take AnswerTime.
//  2. Free its memory: waiting packets, metadata, names, objects, and call events that wait for names. Store
//     the positions of its traces.
//  3. Detach it.
//  4. Deliver the current batches, with the ends of call streams, for at most shutdown_timeout. Then drop and
//     count them.
//  5. After a pause, attach it again, and read from the stored positions.
type memory struct {
	env *Environment
	// account is nil while the session is not read. why is the reason to detach the session.
	account *budget.Account
	why     error
	// asked is closed when the session has to be detached.
	asked chan struct{}
	// reading ends AnswerTime after that, delivering shutdown_timeout after that.
	reading, delivering context.Context
	// leave requests that the session detaches. stop ends the contexts.
	leave, stop func()

	// counted returns the bytes that are counted when they change. measured is the rest, at the last
	// measurement. ungrown is the growth of names and objects since the last charge.
	counted  func() int
	measured int
	ungrown  int
}

// maxUngrown is the growth of names and objects until the account is charged again, in bytes.
const maxUngrown = 256 << 10

// open opens the account.
func (m *memory) open() {
	asked := make(chan struct{})
	reading, endReading := context.WithCancel(m.env.Leaving)
	delivering, endDelivering := context.WithCancelCause(m.env.Delivering)
	answer, timeout := m.env.AnswerTime(), m.env.Settings.ShutdownTimeout
	late := make(chan []*time.Timer, 1)
	leave := sync.OnceFunc(func() {
		late <- []*time.Timer{
			time.AfterFunc(answer, endReading),
			time.AfterFunc(timeout, func() { endDelivering(handover.Late(process.DroppedMemory)) }),
		}
		close(asked)
	})
	m.stop = func() {
		select {
		case timers := <-late:
			for _, t := range timers {
				t.Stop()
			}
		default:
		}
		endReading()
		endDelivering(context.Canceled)
	}
	m.asked, m.leave, m.reading, m.delivering, m.why = asked, leave, reading, delivering, nil
	m.account = m.env.Memory.Open(budget.Settings{Leave: func(*budget.Error) { leave() }})
}

// close closes the account.
func (m *memory) close() {
	m.account.Close()
	m.stop()
	m.account = nil
}

// isAsked reports whether the session has to be detached.
func (m *memory) isAsked() bool {
	if m.why != nil {
		return true
	}
	if m.account == nil {
		return false
	}
	select {
	case <-m.asked:
		return true
	default:
		return false
	}
}

// reason returns why the session has to be detached.
func (m *memory) reason() error {
	if m.why == nil {
		m.why = m.account.Err()
	}
	return m.why
}

// charge charges the account with the memory of the session, and more bytes. The error is the reason to detach the
// session.
func (m *memory) charge(more int) error {
	if m.why != nil || m.account == nil {
		return m.why
	}
	m.ungrown = 0
	if m.why = m.account.Hold(int64(m.measured + m.counted() + more)); m.why != nil {
		m.leave() // the budget does not ask an account that requested memory itself
	}
	return m.why
}

// grow counts the growth of names and objects, and charges the account from time to time.
func (m *memory) grow(bytes int) {
	if m.ungrown += bytes; m.ungrown >= maxUngrown {
		_ = m.charge(0) // reading ends before the next event
	}
}

// shrinkTo returns everything except so many bytes to the budget.
func (m *memory) shrinkTo(bytes int) {
	m.measured = bytes
	m.account.Release(max(0, int(m.account.Used())-bytes))
}

// pause waits. It returns false if the shutdown begins or the session has to be detached.
func (m *memory) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-m.asked:
		return false
	case <-m.env.Serving.Done():
		return false
	}
}
