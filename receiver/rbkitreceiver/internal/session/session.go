// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package session follows one Rbkit server: it connects to the two addresses of the server, and
// connects again after a pause. It identifies the server, switches on the wanted profiles, sends
// commands of the receiver and of operators, and restores the server at the end.
//
// Package life knows the processes behind the server, and handles their messages.
package session

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/life"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// Settings are the settings of one server.
type Settings struct {
	Run      *receiverkit.Run
	Counters *counters.Counters
	Output   Output
	// Publish and Request are the addresses of the server. Request is empty if the receiver asks
	// nothing of it.
	Publish, Request string
	Dial             func(ctx context.Context, address string) (net.Conn, error)
	// Connection are the options of connections. Their timeout is also the timeout of a request.
	Connection zmtp.Options
	Reconnect  receiverkit.RetryConfig
	// RestoreTimeout bounds the time to restore the server at the end.
	RestoreTimeout time.Duration
	// MaxMemory bounds the memory of the server.
	MaxMemory int
	// StateInterval is the time between two corrections of the server's state. TriggerGCInterval
	// and SnapshotInterval are the times between two commands; 0: never.
	StateInterval, TriggerGCInterval, SnapshotInterval time.Duration
	// MemoryProfile and CPUProfile say that the server has to have these profiles. Clock is the
	// command that sets the clock of CPU profiles; empty: the clock stays.
	MemoryProfile, CPUProfile bool
	Clock                     rbkit.Command
	// Origin, Process and Unmeasured are settings of the lives.
	Origin     origin.Settings
	Process    *process.Settings
	Unmeasured func(process.Stats) []string
}

// Output receives the events of a server.
type Output interface {
	life.Output
	// Disconnected receives the end of a connection that has existed since a time.
	Disconnected(of *origin.Origin, since time.Time, why error)
}

// Server is one configured server. The goroutine of Follow owns the fields from buffer on.
type Server struct {
	*Settings
	// Lives are the processes of the server.
	Lives  *life.Lives
	logger *zap.Logger
	health *serverhealth.Part
	memory *servermemory.Memory
	// control is nil if the receiver asks nothing of the server.
	control *control

	// buffer is the memory of the connection that receives; nil: there is no connection.
	buffer *servermemory.Buffer
	// endSession ends the other work of a connection; nil: there is no connection.
	endSession  func()
	connectedAt time.Time
	// failing is a burst of failed connections.
	failing logline.Burst
	// full limits log lines of memory that had to be freed. Its own goroutine owns it.
	full logline.Seldom
}

// New returns a server. Its memory has an account in the memory budget of the run.
func New(settings *Settings) *Server {
	run := settings.Run
	s := &Server{
		Settings: settings,
		logger:   run.Logger.With(zap.String("server", settings.Publish)),
		health:   run.Health.Server(settings.Publish),
		memory:   servermemory.New(run.Memory, settings.MaxMemory),
	}
	lives := life.Settings{
		Kit: run.Kit, Logger: s.logger, Counters: settings.Counters, Health: s.health, Memory: s.memory,
		Origin: settings.Origin, Process: settings.Process, Output: settings.Output, Unmeasured: settings.Unmeasured,
		MaxMessageBytes: settings.Connection.Limits.Message,
	}
	if settings.Request != "" {
		s.control = newControl(settings, s.logger, s.memory)
		lives.Requests = s.control
	}
	s.Lives = life.New(lives)
	return s
}

// Follow receives the messages of the server until the context ends, and connects as often as
// necessary. Then it restores the server.
func (s *Server) Follow(ctx context.Context) {
	options := s.Connection
	options.Room = func(bytes int) error { return s.memory.HoldBuffer(s.buffer, bytes) }
	var freeing sync.WaitGroup
	freeing.Go(func() { s.freeOnDemand(ctx) })
	defer s.memory.Close()
	defer freeing.Wait()
	following := zmtp.Following{
		Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := s.Dial(ctx, s.Publish)
			if err == nil {
				s.buffer = s.memory.Connected(conn)
			}
			return conn, err
		},
		Options:   options,
		Prefixes:  [][]byte{{}},
		Backoff:   s.Reconnect,
		Connected: func(peer net.Addr) { s.connect(ctx, peer) },
		Message:   func(m zmtp.Message) error { s.Lives.Receive(m); return nil },
		Lost:      s.connectionLost,
	}
	_ = following.Run(ctx) // its error is the end of the context
	s.disconnect(process.ErrShutdown)
	if s.control != nil {
		s.control.restore(s.Run.Delivering)
	}
}

// connect begins a connection. Messages arrive from now on, while the receiver asks for the
// server's identity.
func (s *Server) connect(ctx context.Context, peer net.Addr) {
	s.failing.Over()
	s.connectedAt = s.Run.Now()
	s.Lives.Connect(peer)
	s.Counters.ServersConnected(1)
	s.endSession = s.startSession(ctx)
}

// connectionLost handles a connection that failed or ended.
func (s *Server) connectionLost(err error, pause time.Duration) {
	s.Counters.ConnectionFailed(counters.SocketPublish)
	s.memory.Disconnected(s.buffer)
	s.buffer = nil
	s.disconnect(err)
	s.health.Failed(err)
	s.Run.LogSeldom(&s.failing, s.logger.Warn, "The connection to the server failed: retrying", zap.Error(err),
		zap.Duration("pause", pause))
}

// disconnect ends a connection, if there is one. The process may connect again.
func (s *Server) disconnect(why error) {
	if s.endSession == nil {
		return
	}
	s.endSession() // the sender of all messages is known then
	s.endSession = nil
	of := s.Lives.Disconnect()
	s.Counters.ServersConnected(-1)
	s.Output.Disconnected(of, s.connectedAt, why)
}

// deliverInterval is how often old data is delivered while no messages arrive.
const deliverInterval = time.Second

// startSession starts the goroutines of a connection beside the receiving one: they
// identify the server, switch on the wanted profiles, send commands, and deliver old data.
// The result ends them and waits for their end.
func (s *Server) startSession(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		s.identify(ctx)
		running.Go(func() { s.deliverOld(ctx) })
		if s.control != nil {
			s.sendCommands(ctx)
		}
		// At the end the sender of the last messages is known in any case.
		s.identify(ctx)
	})
	return func() {
		cancel()
		running.Wait()
		if s.control != nil {
			s.control.close()
		}
	}
}

// deliverOld delivers old data until the context ends.
func (s *Server) deliverOld(ctx context.Context) {
	ticker := time.NewTicker(deliverInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Lives.DeliverDue()
		}
	}
}

// sendCommands sends commands to the server until the context ends.
func (s *Server) sendCommands(ctx context.Context) {
	state, stopState := every(s.StateInterval)
	defer stopState()
	collect, stopCollect := every(s.TriggerGCInterval)
	defer stopCollect()
	dump, stopDump := every(s.SnapshotInterval)
	defer stopDump()
	// again is the time of the next try to correct the state; nil: the last try succeeded.
	var again <-chan time.Time
	pauses := backoff.New(s.Reconnect)
	correct := func() {
		again = nil
		if s.control.correctState(ctx, s.Lives.SetReply) {
			pauses.Reset()
		} else {
			again = time.After(pauses.Pause())
		}
	}
	s.control.RequestCorrection()
	for {
		select {
		case <-ctx.Done():
			return
		case <-state:
			correct()
		case <-again:
			correct()
		case <-s.control.correction:
			s.identify(ctx)
			correct()
		case <-collect:
			s.control.sendAndReport(ctx, rbkit.TriggerGC)
		case <-dump:
			s.control.sendAndReport(ctx, rbkit.ObjectSpaceSnapshot)
		}
	}
}

// every ticks at an interval; 0: never.
func every(interval time.Duration) (ticks <-chan time.Time, stop func()) {
	if interval == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(interval)
	return ticker.C, ticker.Stop
}

// identify asks for the server's identity as long as it is unknown.
func (s *Server) identify(ctx context.Context) {
	for {
		number, peer, unknown := s.Lives.Unidentified()
		if !unknown {
			return
		}
		s.Lives.Identified(number, s.askIdentity(ctx, peer))
	}
}

// askIdentity asks for the server's identity, several times within the timeout: the socket
// that answers may open a moment after the one that publishes.
func (s *Server) askIdentity(ctx context.Context, peer net.Addr) origin.Identity {
	if s.control == nil {
		return origin.Identity{}
	}
	until, pauses := s.Run.Now().Add(s.Connection.Timeout), backoff.New(s.Reconnect)
	for {
		if hello, ok := s.control.queryState(ctx); ok {
			return origin.Identity{State: &hello, Local: origin.FindLocal(peer, &hello)}
		}
		pause := pauses.Pause()
		if s.Run.Now().Add(pause).After(until) {
			return origin.Identity{}
		}
		select {
		case <-ctx.Done():
			return origin.Identity{}
		case <-time.After(pause):
		}
	}
}

// freeOnDemand frees the server's memory whenever the memory budget demands it, until the
// context ends.
func (s *Server) freeOnDemand(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case shortage := <-s.memory.Over():
			if s.memory.IsCurrent(shortage) {
				s.freeMemory(shortage.Why)
			}
		}
	}
}

// freeMemory ends the life of the server's process, and its connections.
func (s *Server) freeMemory(why error) {
	dropped := s.Lives.Free()
	reason := counters.ReasonBudget
	if short := (*budget.Error)(nil); errors.As(why, &short) && short.Setting == servermemory.Setting {
		reason = counters.ReasonServer
	}
	s.Counters.Disconnected(reason)
	s.Run.LogSeldom(&s.full, s.logger.Warn, "The server is disconnected for a while: its data needs too much memory. Its counters start again at zero",
		zap.Error(why), zap.Int("messages_dropped", dropped))
}
