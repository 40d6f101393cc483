// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// Server is a configured server. Its own goroutine owns it, except for the fields behind the lock.
type Server struct {
	Settings
	tasks *session.Tasks
	// full receives a shortage after the connections are closed for it.
	full chan servermemory.Shortage
	// orders are the orders of operators; nil means that there are none.
	orders chan *session.Order
	// spoke is the protocol of the last link; empty means that there was none.
	spoke       string
	connectedAt time.Time
	// restarting are the pauses after consecutive restarts.
	restarting *backoff.Backoff

	failures failures
	// unanswered is a burst of connections without a reply for silentAfter.
	unanswered logline.Burst
	// connects, restarts and disconnects are log lines that a server can cause very often.
	connects, restarts, disconnects logline.Seldom

	mu    sync.Mutex
	phase phase
	// pid is the ID of the process; 0 means unknown.
	pid int64
	// output and work belong to the last process; nil means that there was none.
	output *Output
	work   *session.Work
	// unreported means that no collection of metrics has included the process since the last connection.
	unreported bool
}

// phase is the phase of a server.
type phase uint8

const (
	// phaseUnreached means that the server does not reply, or sends unknown bytes. It is tried again after a pause.
	phaseUnreached phase = iota
	// phaseProbing means that the receiver connects, and requests the protocol and the identity.
	phaseProbing
	// phaseConnected means that commands are sent.
	phaseConnected
	// phaseGivenUp means that the server does not know the configured version of the protocol. The receiver does not
	// try again.
	phaseGivenUp
)

func (p phase) String() string {
	return [...]string{"unreached", "probing", "connected", "given_up"}[p]
}

// New returns a server.
func New(settings Settings) *Server {
	s := &Server{
		Settings: settings, tasks: session.NewTasks(settings.Tasks), full: make(chan servermemory.Shortage, 1),
		restarting: backoff.New(settings.Session.Reconnect), failures: failures{repeatAfter: settings.RepeatAfter},
	}
	s.Session.Counters, s.Session.Logger, s.Session.Now = s.Counters, s.Logger, s.Run.Now
	s.Session.Shutdown, s.Session.LastAsking = s.Run.Delivering, s.Run.Leaving
	s.Process.Counters, s.Process.Logger, s.Process.Memory, s.Process.Now = s.Counters, s.Logger, s.Memory, s.Run.Now
	return s
}

// TaskCount returns the number of tasks. No order may run meanwhile.
func (s *Server) TaskCount() int { return s.tasks.Len() }

// Phase returns the phase of the server.
func (s *Server) Phase() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase.String()
}

// HasLeftovers reports whether classes may have instrumentation. No goroutine may follow the server meanwhile.
func (s *Server) HasLeftovers() bool { return s.work != nil && s.work.HasLeftovers() }

func (s *Server) now() time.Time { return s.Run.Now() }

// Follow runs the server until ctx ends, over all losses of connections. Then it sends the owed resets.
func (s *Server) Follow(ctx context.Context) {
	pauses := backoff.New(s.Session.Reconnect)
	watching, endWatch := context.WithCancel(context.WithoutCancel(ctx))
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watchMemory(watching) })
	defer s.Memory.Close()
	defer watcher.Wait()
	defer endWatch()
	for {
		began := s.now()
		s.enter(phaseProbing)
		err := s.serve(ctx)
		s.freeIfFull()
		if s.IsHopeless != nil && s.IsHopeless(err) && ctx.Err() == nil {
			s.giveUp(ctx, err)
			s.restoreClasses(s.Run.Leaving)
			return
		}
		s.enter(phaseUnreached)
		if errors.Is(err, session.ErrShutdown) {
			return
		}
		if s.now().Sub(began) > s.Session.Reconnect.MaxInterval {
			pauses.Reset()
		}
		if ctx.Err() != nil || !s.rest(ctx, pauses.Pause(), err) {
			s.restoreClasses(s.Run.Leaving)
			return
		}
	}
}

func (s *Server) enter(p phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = p
}

// serve connects to the server and runs its sessions, until the link is lost or ctx ends. The error is never nil.
func (s *Server) serve(ctx context.Context) error {
	waiting := time.AfterFunc(s.SilentAfter, s.reportSilence)
	defer waiting.Stop()
	l, err := s.Connect(ctx, s.spoke)
	if err != nil {
		return err
	}
	defer l.Close()
	who, err := s.Session.Identify(ctx, l)
	waiting.Stop()
	if err != nil {
		s.spoke = "" // the server may have changed its protocol
		return err
	}
	s.spoke = l.Protocol
	s.connected(who)
	err = s.ask(ctx, l)
	s.disconnected(err)
	return err
}

// ask runs sessions for one process after the other over a link, until the link is lost or ctx ends.
func (s *Server) ask(ctx context.Context, l *session.Link) error {
	for pause := time.Duration(0); ; {
		err := s.askProcess(ctx, l, pause)
		if full := (*session.OutOfMemory)(nil); errors.As(err, &full) {
			s.free(full.Shortage)
			return full.Why
		}
		other := (*session.OtherProcess)(nil)
		if !errors.As(err, &other) {
			return err
		}
		pause = s.restartPause()
		s.mu.Lock()
		s.beginProcess(other.Who)
		s.mu.Unlock()
		s.output.Process.Identified(other.Who.Sessions, other.Who.HasSessions)
	}
}

// askProcess runs a session for the present process.
func (s *Server) askProcess(ctx context.Context, l *session.Link, pause time.Duration) error {
	if l.Begin != nil {
		owed, err := l.Begin(ctx, s.work.Who())
		if err != nil {
			return err
		}
		s.work.Owe(owed)
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	running, end := context.WithCancel(ctx)
	defer end()
	if s.Beside != nil {
		who, of := s.work.Who(), s.output
		beside.Go(func() { s.Beside(running, who, of) })
	}
	inputs := session.Inputs{Orders: s.orders, Full: s.full, Memory: s.Memory}
	return session.New(l, s.work, inputs).Run(ctx, pause)
}

// connected handles a process that has identified itself over a new link.
func (s *Server) connected(who session.Identity) {
	s.failures.over()
	s.unanswered.Over()
	s.mu.Lock()
	same := s.work != nil && !s.work.Who().IsOther(who)
	if !same {
		s.beginProcess(who)
	}
	s.unreported, s.phase = true, phaseConnected
	s.connectedAt = s.now()
	s.mu.Unlock()
	s.work.Identified(who)
	if same {
		s.output.Process.Reconnected()
	}
	s.Health.Up()
	s.Counters.ServersConnected(1)
	if since, due := s.connects.Count(s.now()); due {
		s.Logger.Info("Connected to the server", append(identityFields(who), zap.Int("times_since_last_line", since))...)
	}
	s.Logs.ServerConnected(s.output.Origin)
}

// identityFields returns the log fields of an identity.
func identityFields(who session.Identity) []zap.Field {
	fields := []zap.Field{zap.Int64("pid", who.PID), zap.String("version", text.Short(who.Version))}
	if who.Protocol == "" {
		return fields // the tracer has only one
	}
	return append([]zap.Field{zap.String("protocol", who.Protocol)}, fields...)
}

// beginProcess switches to another process of the server. The caller holds the lock.
func (s *Server) beginProcess(who session.Identity) {
	restarted := s.work != nil
	if restarted && s.unreported {
		s.Ended(s.output.state(true))
	}
	if s.IsLocal != nil && s.IsLocal(who.PID) {
		who.Host = s.Run.Host
	}
	s.pid, s.output = who.PID, s.newOutput(who)
	s.work = session.NewWork(&s.Session, s.tasks, s.output.Process, s.output, who)
	if !restarted {
		return
	}
	s.Counters.Restarted()
	if since, due := s.restarts.Count(s.now()); due {
		s.Logger.Warn("The server was restarted", append(identityFields(who), zap.Int("times_since_last_line", since))...)
	}
	s.Logs.ServerRestarted(s.output.Origin, "The server was restarted")
}

// newOutput returns the output of a process with empty state.
func (s *Server) newOutput(who session.Identity) *Output {
	p := process.New(s.Process)
	return &Output{Origin: s.newOrigin(who, p.Begun), Process: p, spans: s.Spans, logs: s.Logs, recordsAsLogs: s.RecordsAsLogs}
}

// newOrigin returns the origin of a process.
func (s *Server) newOrigin(who session.Identity, begun time.Time) *signals.Origin {
	of := signals.Server{Tracer: s.Tracer, Endpoint: s.Endpoint, ServiceName: s.ServiceName, Host: s.Run.Host}
	return of.Origin(s.Resource(), who, begun)
}

// restartPause returns the pause before the first command to another process: a server may report another process at
// each check.
func (s *Server) restartPause() time.Duration {
	if s.now().Sub(s.output.Origin.Begun) > s.Session.Reconnect.MaxInterval {
		s.restarting.Reset()
	}
	return s.restarting.Pause()
}

// disconnected handles the loss of the server. The process may come back.
func (s *Server) disconnected(why error) {
	s.enter(phaseUnreached)
	s.Counters.ServersConnected(-1)
	s.Logs.ServerGone(s.output.Origin, s.connectedAt, why)
}

// State returns a snapshot for metrics, if there is one: of the present, or once more the last one.
func (s *Server) State() (State, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == phaseConnected:
		return s.output.state(false), true
	case s.unreported:
		s.unreported = false
		return s.output.state(true), true
	default:
		return State{}, false
	}
}

// giveUp sends the owed resets once and waits for the end of ctx: another try would have the same result.
func (s *Server) giveUp(ctx context.Context, err error) {
	s.enter(phaseGivenUp)
	s.Counters.ConnectionFailed()
	s.Health.GivenUp(err)
	s.Logger.Error("The server does not know the version of the protocol, and the receiver gives up: "+s.Remedy, zap.Error(err))
	s.restoreClasses(ctx)
	repeat := time.NewTicker(s.RepeatAfter)
	defer repeat.Stop()
	for {
		select {
		case <-repeat.C:
			s.Logger.Error("The receiver still sends this server no commands: "+s.Remedy, zap.Error(err))
		case o := <-s.orders:
			o.Fail(agentcontrol.Errorf(agentcontrol.Lost, "the receiver does not send commands to the server any more: %w", err))
		case short := <-s.full:
			s.free(short)
		case <-ctx.Done():
			return
		}
	}
}

// restoreClasses sends the owed resets to a server without a link, if one more connection succeeds.
func (s *Server) restoreClasses(ctx context.Context) {
	if !s.HasLeftovers() {
		return
	}
	l, err := s.Connect(ctx, s.work.Who().Protocol)
	if err != nil {
		s.work.FailRestore(session.Because(ctx, err))
		return
	}
	defer l.Close()
	s.work.Restore(ctx, l)
}

// rest pauses before the next try. ok is false if ctx has ended.
func (s *Server) rest(ctx context.Context, pause time.Duration, why error) (ok bool) {
	s.Counters.ConnectionFailed()
	s.Health.Failed(why)
	if s.IsSilence == nil || !s.IsSilence(why) {
		s.unanswered.Over()
	}
	if since, due := s.failures.say(why, s.now()); due {
		s.Logger.Warn("The server cannot be reached, or was lost: the receiver tries again", zap.Error(why),
			zap.Duration("pause", pause), zap.Int("failures_since_last_line", since))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case o := <-s.orders:
			o.Fail(agentcontrol.Errorf(agentcontrol.Lost, "the server cannot be reached, or was lost, and the receiver tries again: %w", why))
		case <-ctx.Done():
			return false
		case short := <-s.full:
			s.free(short)
		case <-timer.C:
			return true
		}
	}
}

// reportSilence reports that a server has not identified itself so far, once until it does or fails for another reason.
// Any goroutine may call it.
func (s *Server) reportSilence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != phaseProbing {
		return // the server has just identified itself, or failed
	}
	s.Health.Failed(errUnanswered)
	if since, due := s.unanswered.Count(s.now()); due {
		s.Logger.Warn("The server has not identified itself: its process hangs, or another service listens at the port. The receiver waits",
			zap.Duration("after", s.SilentAfter), zap.Int("times_since_last_line", since))
	}
}

var errUnanswered = errors.New("it accepts connections, but has not identified itself")
