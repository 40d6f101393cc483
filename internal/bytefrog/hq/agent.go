// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Settings configure an agent. The agent calls its functions under its lock, so they must not call the agent.
type Settings struct {
	// Send sends a command to the agent. The error is the connection's.
	Send func(c Command) error
	// Changed, if it is set, is called when the agent's status has changed.
	Changed func(s Status)
	// Answer is how long the agent has to answer suspend before it can be sent unsuspend without
	// an answer.
	Answer time.Duration
	// Prepared is how long after its first data connection the agent counts as prepared for commands, without a sign of
	// it.
	Prepared time.Duration
	// Yielding are reasons to suspend that do not resume a paused program.
	Yielding Reason
}

// Agent is one agent, from its hello to the end of its control connection. It is safe for concurrent use. The lock is
// held while commands are sent, so they keep the order in which the state machine decided them.
type Agent struct {
	settings Settings
	// prepared is closed, and isPrepared set, when the agent obeys commands.
	prepared   chan struct{}
	isPrepared atomic.Bool
	changed    Signal

	mu      sync.Mutex
	machine Machine
	// answering runs out when the answer to the suspends-th suspend is overdue, preparing when
	// an agent without a sign counts as prepared.
	answering, preparing *time.Timer
	suspends             uint64
}

// NewAgent returns an agent that has not been started. End ends its timers.
func NewAgent(settings Settings) *Agent {
	if settings.Changed == nil {
		settings.Changed = func(Status) {}
	}
	return &Agent{settings: settings, prepared: make(chan struct{}), machine: Machine{Yielding: settings.Yielding}}
}

// Do applies events to the agent as one step: no other event happens in between. The event returns the commands that
// the machine's methods returned. The error is event's, or the first of those with which a command could not be sent.
func (a *Agent) Do(event func(m *Machine) ([]Command, error)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.machine.Status()
	commands, err := event(&a.machine)
	return a.apply(commands, before, err)
}

// apply sends the commands of an event, and reports the change. The caller holds the lock.
func (a *Agent) apply(commands []Command, before Status, err error) error {
	for _, c := range commands {
		if failed := a.settings.Send(c); failed != nil && err == nil {
			err = failed
		}
		if c.Of == bytefrog.TypeSuspend {
			a.awaitAnswer()
		}
	}
	if now := a.machine.Status(); now != before || len(commands) > 0 {
		if now.State == Ended {
			a.stopTimers()
		}
		a.settings.Changed(now)
		a.changed.Notify()
	}
	return err
}

// awaitAnswer starts the time in which the agent answers suspend. The caller holds the lock.
func (a *Agent) awaitAnswer() {
	a.suspends++
	suspend := a.suspends
	if a.answering != nil {
		a.answering.Stop()
	}
	a.answering = time.AfterFunc(a.settings.Answer, func() { a.overdue(suspend) })
}

// overdue is called when the time to answer the suspend-th suspend is over. A timer of an earlier suspend changes
// nothing.
func (a *Agent) overdue(suspend uint64) {
	a.on(func(m *Machine) []Command {
		if suspend != a.suspends {
			return nil
		}
		return m.Overdue()
	})
}

// stopTimers ends the timers. The caller holds the lock.
func (a *Agent) stopTimers() {
	for _, timer := range []*time.Timer{a.answering, a.preparing} {
		if timer != nil {
			timer.Stop()
		}
	}
}

// on applies an event. It ignores a command that could not be sent, because the control connection ends then.
func (a *Agent) on(event func(m *Machine) []Command) {
	_ = a.Do(func(m *Machine) ([]Command, error) { return event(m), nil })
}

// Joined: the agent has opened its first data connection.
func (a *Agent) Joined() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.preparing == nil && a.machine.state != Ended {
		a.preparing = time.AfterFunc(a.settings.Prepared, a.SetPrepared)
	}
}

// SetPrepared notes that the agent obeys commands from now on. A suspend that it reads before its buffers listen to its
// mode holds no event back, and the next one ends its tracing. They listen when the agent has opened its data
// connections; its first class report or event comes later.
func (a *Agent) SetPrepared() {
	if a.isPrepared.Swap(true) {
		return
	}
	a.on((*Machine).Prepared)
	close(a.prepared)
}

// IsPrepared reports whether the agent obeys commands. It costs an atomic load.
func (a *Agent) IsPrepared() bool { return a.isPrepared.Load() }

// Prepared is closed when the agent obeys commands.
func (a *Agent) Prepared() <-chan struct{} { return a.prepared }

// Suspend adds reasons to suspend the agent. It returns the agent's status before.
func (a *Agent) Suspend(r Reason) (before Status) {
	a.on(func(m *Machine) []Command {
		before = m.Status()
		return m.Suspend(r)
	})
	return before
}

// Resume removes reasons to suspend the agent.
func (a *Agent) Resume(r Reason) {
	a.on(func(m *Machine) []Command { return m.Resume(r) })
}

// Pause pauses or continues the program.
func (a *Agent) Pause(wanted bool) {
	a.on(func(m *Machine) []Command { return m.Pause(wanted) })
}

// Stop ends the agent's tracing.
func (a *Agent) Stop() { a.on((*Machine).Stop) }

// Withdraw removes the orders of a collector, and reasons to suspend.
func (a *Agent) Withdraw(r Reason) {
	a.on(func(m *Machine) []Command { return m.Withdraw(r) })
}

// DataBreak notes that the agent has sent a data break before the number at.
func (a *Agent) DataBreak(at uint64) {
	a.on(func(m *Machine) []Command { return m.DataBreak(at) })
}

// Heartbeat notes a heartbeat of the agent with its mode. It wakes waiting goroutines.
func (a *Agent) Heartbeat(mode bytefrog.Mode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.machine.Status()
	_ = a.apply(a.machine.Heartbeat(mode), before, nil)
	a.changed.Notify()
}

// Release continues a paused program. The agent gets no more commands.
func (a *Agent) Release() { a.on((*Machine).Release) }

// End notes that the agent has ended its tracing, or its control connection has ended. It gets no more commands, and
// its timers end.
func (a *Agent) End() { a.on((*Machine).End) }

// Status returns the state of the agent, the reasons of its suspension, and its last break.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine.Status()
}

// IsPauseWanted reports whether the program was ordered to pause.
func (a *Agent) IsPauseWanted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine.pause
}

// Next returns a channel that is closed with the agent's next heartbeat or change of status.
func (a *Agent) Next() <-chan struct{} { return a.changed.Next() }

// Await waits until the condition holds. It reports false if gone or patience came first; nil channels never do.
func (a *Agent) Await(condition func(s Status) bool, gone <-chan struct{}, patience <-chan time.Time) bool {
	for {
		next := a.Next()
		if condition(a.Status()) {
			return true
		}
		select {
		case <-next:
		case <-gone:
			return false
		case <-patience:
			return false
		}
	}
}
