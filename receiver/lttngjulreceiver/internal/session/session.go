// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/process"
)

// Settings are common to all sessions of a receiver.
type Settings struct {
	Dialect lttngagent.Dialect
	// RegistrationTimeout bounds the registration, and CommandTimeout a command with its whole answer.
	RegistrationTimeout, CommandTimeout time.Duration
	// FirstPause is the time between the first two lists, and ListInterval the longest pause.
	FirstPause, ListInterval time.Duration
	// Silence is how long an agent of the RFC must be silent before the first list.
	Silence time.Duration
	// List bounds one list, and MaxNameBytes the lists of all agents together. Memory is the budget of the process.
	List         lttngagent.Limits
	MaxNameBytes int
	Memory       *budget.Group
	// FindProcess finds the process at the other end of a connection, as process.Finder does.
	FindProcess func(conn net.Conn, since time.Time, pid uint32, cancelled <-chan struct{}) (process.Process, bool)
	// Serving is closed when the shutdown begins, and Delivering when its time is over.
	Serving, Delivering <-chan struct{}
	Now                 func() time.Time
}

// Group has the state that sessions share. It is safe for concurrent use.
type Group struct {
	settings Settings
	names    *nameMemory
	undo     pendingUndo
}

// NewGroup returns a group without sessions.
func NewGroup(s Settings) *Group {
	return &Group{settings: s, names: newNameMemory(s.MaxNameBytes, s.Memory)}
}

// NameBytes returns the memory of all names of loggers, including lists that are being read.
func (g *Group) NameBytes() int {
	g.names.mu.Lock()
	defer g.names.mu.Unlock()
	return g.names.used
}

// Observer receives the events of one session, from the session's goroutine.
type Observer interface {
	// Released is called once, when no application waits for the agent any more.
	Released()
	// CommandDone is called with the answer to each command.
	CommandDone(command lttngagent.Command, a Answer)
	// LoggersChanged is called with the loggers that appeared and disappeared since the last list.
	LoggersChanged(appeared, disappeared []string)
	// Ended is called at the end of the session, before undo commands are sent on a connection with an error.
	Ended(e Ending)
}

// Session is a connection with an agent. One goroutine calls Register, Serve and Close. All other methods are safe for
// concurrent use, except Process.
type Session struct {
	group        *Group
	observer     Observer
	conversation *conversation
	// pid is the process ID inside the process's own namespace; 0: the protocol does not send it.
	pid        uint32
	registered time.Time
	commands   commandQueue
	// loggers is the number of loggers, and answeredAt the time of the last answer in Unix nanoseconds.
	loggers, answeredAt atomic.Int64

	// released: the application does not wait for the agent any more.
	released bool
	// process describes the agent's process, once searched is true.
	process  process.Process
	searched bool
	// undo has the commands that restore the agent. The last one is sent first.
	undo      []lttngagent.Command
	inventory inventory
	pace      listPace
}

// Open returns the session of a new connection.
func (g *Group) Open(conn net.Conn) *Session {
	return &Session{
		group: g, conversation: newConversation(conn, g.names),
		pace: listPace{first: g.settings.FirstPause, interval: g.settings.ListInterval},
	}
}

// Close closes the connection and frees its memory.
func (s *Session) Close() { s.conversation.close() }

// Agent returns the protocol and domain of a registered agent.
func (s *Session) Agent() lttngagent.Agent { return s.conversation.agent }

// PID returns the process ID that the agent sent, or 0.
func (s *Session) PID() uint32 { return s.pid }

// Peer returns the address of the agent.
func (s *Session) Peer() net.Addr { return s.conversation.conn.RemoteAddr() }

// Registered returns the time of the registration.
func (s *Session) Registered() time.Time { return s.registered }

// Loggers returns the number of loggers in the last list.
func (s *Session) Loggers() int64 { return s.loggers.Load() }

// AnsweredAt returns the time of the last answer.
func (s *Session) AnsweredAt() time.Time { return time.Unix(0, s.answeredAt.Load()) }

// Register reads the registration of the agent. It calls sent if only a part of it has arrived.
func (s *Session) Register(sent func()) error {
	err := s.identify(sent)
	if err == nil {
		s.registered = s.group.settings.Now()
		s.answeredAt.Store(s.registered.UnixNano())
	}
	return err
}

// identify learns which agent is at the other end. An agent of the RFC sends no registration: it is silent, and answers
// a list.
func (s *Session) identify(sent func()) error {
	c, settings := s.conversation, &s.group.settings
	if settings.Dialect != lttngagent.RFC {
		registration, err := c.registration(settings.RegistrationTimeout, sent)
		c.agent, s.pid = registration.Agent(), registration.PID
		return err
	}
	if err := c.wait(time.Now().Add(settings.Silence)); err != nil {
		if errors.As(err, new(UnexpectedDataError)) {
			err = fmt.Errorf("%w: agents of protocol 2.0 register in this way: leave out `protocol: rfc`", err)
		}
		return err
	}
	c.agent = lttngagent.Agent{Dialect: lttngagent.RFC, Domain: lttngagent.JUL}
	_, err := c.list(settings.List, settings.RegistrationTimeout)
	return err
}

// Queue queues commands for the agent. It returns false if the receiver is disconnecting from it.
func (s *Session) Queue(commands ...lttngagent.Command) bool {
	queued := make([]queuedCommand, len(commands))
	for i, command := range commands {
		queued[i] = queuedCommand{command: command}
	}
	return s.queue(queued...)
}

// Do queues a command and returns the agent's answer. The error is ErrNotSent if the receiver is disconnecting from the
// agent, or the context's.
func (s *Session) Do(ctx context.Context, command lttngagent.Command) (Answer, error) {
	answered := make(chan Answer, 1)
	if !s.queue(queuedCommand{command: command, caller: ctx, answered: answered}) {
		return Answer{}, ErrNotSent
	}
	select {
	case a := <-answered:
		return a, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

func (s *Session) queue(more ...queuedCommand) bool {
	queued := s.commands.queue(more...)
	s.conversation.wake()
	return queued
}

// RestoreUntil makes Serve restore the agent until the time latest, and return.
func (s *Session) RestoreUntil(latest time.Time) {
	s.commands.close()
	s.conversation.finishBy(latest)
	s.conversation.wake()
}

// Abort ends Register.
func (s *Session) Abort() { s.conversation.finishBy(pastDeadline) }

// Serve serves a registered agent until it disconnects or is restored.
func (s *Session) Serve(o Observer) {
	s.observer = o
	if s.Agent().Dialect == lttngagent.RFC {
		o.Released() // no application waits for it
	}
	e := s.endingFor(s.carryOutAll())
	s.commands.close()
	o.Ended(e)
	if e.Cause != Shutdown && !e.forgetsCommands(s.Agent().Domain) {
		s.undoLater(e)
	}
}

// endingFor returns the ending for an error of carryOutAll. If memory was short, it first frees the agent's memory.
func (s *Session) endingFor(err error) Ending {
	e := endingOf(err)
	if why := s.conversation.charge.closeReason(); why != nil && e.Cause != Shutdown {
		e = Ending{Cause: Memory, Err: why}
	}
	if e.Cause == Memory {
		s.inventory = inventory{}
		_ = s.conversation.charge.holdExactly(0) // freeing always succeeds
	}
	return e
}

// undoLater sends the undo commands on a connection that is about to close. If the agent may not have read them, they
// wait until it connects again.
func (s *Session) undoLater(e Ending) {
	if len(s.undo) == 0 || e.canReadCommands() && s.conversation.sendUndo(s.undo, s.group.settings.CommandTimeout) {
		return
	}
	s.group.undo.add(s.life(), s.undo)
}

// carryOutAll sends the queued commands, lists loggers in between, and waits. It returns nil once it has restored the
// agent.
func (s *Session) carryOutAll() error {
	for {
		next, over := s.commands.next()
		err := s.conversation.charge.closeReason()
		switch {
		case err != nil:
		case over:
			return s.restore()
		case next.command != nil:
			err = s.carryOutQueued(next)
		case s.pace.isDue(time.Now()):
			_, err = s.list()
		default:
			err = s.conversation.wait(s.pace.due)
		}
		if err != nil {
			return err
		}
	}
}

// carryOutQueued carries out a queued command and answers it.
func (s *Session) carryOutQueued(c queuedCommand) error {
	answer, err := s.carryOut(c.command)
	if err != nil && answer.Err == nil {
		answer.Result, answer.Err = NoAnswer, err
	}
	if _, isList := c.command.(lttngagent.List); isList && answer.Result == Success && c.answered != nil {
		answer.Loggers = slices.Clone(s.inventory.names) // the next list replaces the names
	}
	c.answer(answer)
	return err
}

// restore lets the application continue, if it still waits, and sends the undo commands.
func (s *Session) restore() error {
	if s.Agent().Dialect == lttngagent.V2 && !s.released {
		if _, err := s.registrationDone(); err != nil {
			return &abandonedError{remaining: len(s.undo), err: err}
		}
	}
	s.addPendingUndo()
	for n := len(s.undo); n > 0; n = len(s.undo) {
		if _, err := s.carryOut(s.undo[n-1]); err != nil {
			return &abandonedError{remaining: n, err: err}
		}
		s.undo = s.undo[:n-1] // a refused command is not sent again
	}
	return nil
}

// carryOut sends a command and handles the answer. It returns an error if the connection can't be used any more.
func (s *Session) carryOut(command lttngagent.Command) (Answer, error) {
	switch command.(type) {
	case lttngagent.List:
		return s.list()
	case lttngagent.RegistrationDone:
		answer, err := s.registrationDone()
		s.Process(s.group.settings.Serving) // impossible once the agent has closed its connection
		s.observer.Released()
		return answer, err
	}
	code, err := s.conversation.ask(command, s.group.settings.CommandTimeout)
	answer, lost := s.report(command, code, err)
	if lost != nil {
		if undo := undoOf(command); undo != nil && s.conversation.sent {
			s.undo = append(s.undo, undo) // the agent may have carried out the command
		}
		return answer, lost
	}
	if answer.Result == Success {
		s.updateUndo(command)
	}
	s.pace.changed()
	return answer, nil
}

// registrationDone lets the application continue.
func (s *Session) registrationDone() (Answer, error) {
	command := lttngagent.RegistrationDone{}
	s.released = true
	return s.report(command, lttngagent.Success, s.conversation.send(command, s.group.settings.CommandTimeout))
}

// list asks for the agent's loggers.
func (s *Session) list() (Answer, error) {
	reply, err := s.conversation.list(s.group.settings.List, s.group.settings.CommandTimeout)
	var large *lttngagent.TooLargeError
	if errors.As(err, &large) {
		return s.ignoreLargeList(large)
	}
	answer, lost := s.report(lttngagent.List{}, reply.Code, err)
	if lost != nil {
		return answer, lost
	}
	return answer, s.useList(reply)
}

// ignoreLargeList continues with an agent that has more loggers than the limits allow, and keeps its last list. The
// connection stays open, because the agent would connect again in seconds.
func (s *Session) ignoreLargeList(large *lttngagent.TooLargeError) (Answer, error) {
	answer := Answer{Result: TooLarge, Err: large}
	s.observer.CommandDone(lttngagent.List{}, answer)
	s.pace.listed(time.Now(), false)
	return answer, s.conversation.charge.holdExactly(s.inventory.bytes)
}

// useList replaces the inventory with the loggers of a reply.
func (s *Session) useList(reply lttngagent.ListReply) error {
	var appeared, disappeared []string
	if reply.Code == lttngagent.Success {
		appeared, disappeared = s.inventory.replace(reply.Loggers)
	}
	if err := s.conversation.charge.holdExactly(s.inventory.bytes); err != nil {
		return err
	}
	s.loggers.Store(int64(len(s.inventory.names)))
	changed := len(appeared)+len(disappeared) > 0
	if changed {
		s.observer.LoggersChanged(appeared, disappeared)
	}
	s.pace.listed(time.Now(), changed)
	return nil
}

// report reports the answer to a command to the observer. It returns an error if the connection can't be used any more.
func (s *Session) report(command lttngagent.Command, code lttngagent.Code, err error) (answer Answer, lost error) {
	answer = Answer{Result: resultOf(code), Code: code, Err: err}
	var unsupported *lttngagent.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		answer.Result = Unsupported
	case err != nil:
		answer.Result, lost = NoAnswer, err
	}
	if lost == nil {
		s.answeredAt.Store(s.group.settings.Now().UnixNano())
	}
	s.observer.CommandDone(command, answer)
	return answer, lost
}

// updateUndo adds the undo command of a command that succeeded, or removes the undo command that it was.
func (s *Session) updateUndo(command lttngagent.Command) {
	if undo := undoOf(command); undo != nil {
		s.undo = append(s.undo, undo)
		return
	}
	for i := len(s.undo) - 1; i >= 0; i-- {
		if s.undo[i] == command {
			s.undo = slices.Delete(s.undo, i, i+1)
			return
		}
	}
}

// Process returns the agent's process. It searches for the process once, unless cancelled is closed before. Only the
// session's goroutine calls it.
func (s *Session) Process(cancelled <-chan struct{}) process.Process {
	if !s.searched && s.pid != 0 {
		s.process, s.searched = s.group.settings.FindProcess(s.conversation.conn, s.conversation.begun, s.pid, cancelled)
	}
	return s.process
}

// life identifies the agent's process. It works only while the connection is open and the time of the shutdown is not
// over.
func (s *Session) life() life {
	return life{domain: s.Agent().Domain, pid: s.pid, started: s.Process(s.group.settings.Delivering).Started}
}

// addPendingUndo adds the undo commands of the agent's earlier connection.
func (s *Session) addPendingUndo() {
	if s.group.undo.has(s.Agent().Domain, s.pid) {
		s.undo = append(s.group.undo.remove(s.life()), s.undo...)
	}
}
