// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// server is one that is configured. Its fields are those of the goroutine that follows it,
// but for what is behind the lock.
type server struct {
	env    *environment
	config *ServerConfig
	logger *zap.Logger
	// health is its part of the component's.
	health *serverhealth.Part
	// control is nil where nothing is asked of the server.
	control *control
	// memory is what the server holds, and buffer what the connection does on which it
	// publishes; nil: there is none.
	memory *servermemory.Memory
	buffer *servermemory.Buffer
	// detach ends what goes on beside receiving; nil: there is no connection.
	detach      func()
	connectedAt time.Time
	// failing is a burst of connections that can't be made, bad one of messages that are
	// not what they should be.
	failing, bad logline.Burst
	// connects, restarts, dialects and full are what a server can make happen very often.
	connects, restarts, dialects, full logline.Seldom

	mu sync.Mutex
	// peer is the other side of the last connection, and dialect that of the last message.
	peer    net.Addr
	dialect rbkit.Dialect
	// process is the life that data came from last, nil: none yet; who is what is known of
	// it, and met what was said of it when the last connection was made.
	process  *process
	who, met identity
	// said is what it said of itself last; nil: it was not asked, or didn't answer. heard is
	// when a message or an answer came last.
	said  *rbkit.HandshakeReply
	heard time.Time
	// first is when it was seen first, in Unix milliseconds: no two lives have the same.
	first int64
	// connected says that the process can be heard of, and untold that no collection of
	// metrics has had it since it was. One that comes back before that has not ended.
	connected, untold bool
	// meeting says that it is not known whose messages are those that come.
	meeting meeting
	// limited are the limits that were reached.
	limited [len(limits)]bool
	// unmeasuredLogged says that the log has the statistics without a metric.
	unmeasuredLogged bool
}

func newServer(env *environment, config *ServerConfig) *server {
	s := &server{
		env: env, config: config,
		logger: env.logger.With(zap.String("server", config.Publish)),
		health: env.health.Server(config.Publish),
		memory: servermemory.New(env.memory, env.config.Limits.MaxServerMemory),
	}
	if config.Request != "" {
		s.control = newControl(env, config, s.logger)
		s.control.memory = s.memory
	}
	return s
}

// zmtpOptions say how the server is spoken with.
func (e *environment) zmtpOptions(server *ServerConfig) zmtp.Options {
	o := zmtp.Options{
		Timeout: e.config.Timeout, Heartbeat: e.config.Heartbeat,
		Limits: zmtp.Limits{Message: e.config.Limits.MaxMessageBytes},
	}
	if server.Username != "" {
		o.Security = zmtp.Plain{Username: server.Username, Password: string(server.Password)}
	}
	return o
}

// follow receives what the server publishes until the context ends, whatever happens to
// connections. Then it leaves the server as it was found.
func (s *server) follow(ctx context.Context) {
	options := s.env.zmtpOptions(s.config)
	options.Room = func(bytes int) error { return s.memory.HoldBuffer(s.buffer, bytes) }
	var releasing sync.WaitGroup
	releasing.Go(func() { s.release(ctx) })
	defer s.memory.Close()
	defer releasing.Wait()
	following := zmtp.Following{
		Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := s.env.dial(ctx, s.config.Publish)
			if err == nil {
				s.buffer = s.memory.Connected(conn)
			}
			return conn, err
		},
		Options:   options,
		Prefixes:  [][]byte{{}},
		Backoff:   s.env.config.Reconnect,
		Connected: func(peer net.Addr) { s.connect(ctx, peer) },
		Message:   func(m zmtp.Message) error { s.receive(m); return nil },
		Lost:      s.lost,
	}
	_ = following.Run(ctx) // its end is that of the context
	s.disconnect(errShutdown)
	if s.control != nil {
		s.control.leave(s.env.ctx)
	}
}

var errShutdown = errors.New("the collector is shut down")

// connect is told that the server can be heard of. Messages are received from now on,
// while it is asked who it is.
func (s *server) connect(ctx context.Context, peer net.Addr) {
	s.failing.Over()
	s.connectedAt = s.env.now()
	s.mu.Lock()
	s.peer = peer
	s.meeting.begin(false)
	s.mu.Unlock()
	s.env.telemetry.servers(1)
	s.detach = s.attend(ctx)
}

// seldom logs a line if it is its turn.
func (s *server) seldom(line *logline.Seldom, log func(string, ...zap.Field), message string, fields ...zap.Field) {
	if since, say := line.Say(s.env.now()); say {
		log(message, append(fields, zap.Int("times_since_last_line", since))...)
	}
}

// about is what a server says of itself, for the log.
func about(hello *rbkit.HandshakeReply) []zap.Field {
	if hello == nil {
		return nil
	}
	return []zap.Field{
		zap.String("process", text(hello.ProcessName)), zap.Uint64("pid", hello.PID),
		zap.String("version", text(hello.ServerVersion)), zap.Stringer("dialect", hello.Dialect),
	}
}

// begin begins a life of the server, and ends the one before. The lock is held.
func (s *server) begin(who identity) {
	restarted := s.process != nil
	if restarted {
		s.end()
		s.env.telemetry.restarted()
	}
	s.renew(who)
	if restarted {
		s.seldom(&s.restarts, s.logger.Warn, "The server was restarted", about(who.hello)...)
		s.env.saidRestarted(s.process.origin)
	}
}

// renew begins a life of which nothing is known yet. The lock is held.
func (s *server) renew(who identity) {
	now := s.env.now()
	s.first = max(s.first+1, now.UnixMilli())
	s.who, s.said = who, who.hello
	s.process = newProcess(s.env, newOrigin(s.env.config, s.config, s.env.host, who.hello, who.local, now, s.first))
	s.process.interruption.held = s.held
	if who.hello != nil {
		s.heard = now
		s.process.samples.state(who.hello)
	}
}

// introduce gives the process its name, if its server has not said until now who it is. The lock is
// held.
func (s *server) introduce(hello *rbkit.HandshakeReply) {
	if s.who.hello != nil || s.meeting.goesOn {
		return
	}
	s.who = identity{hello: hello, local: findLocal(s.peer, hello)}
	if s.met.hello == nil {
		s.met = s.who
	}
	s.process.introduce(newOrigin(s.env.config, s.config, s.env.host, s.who.hello, s.who.local, s.process.origin.begun, s.first))
}

// end hands on all that there is of a process, and its last metrics. The lock is held.
func (s *server) end() {
	s.finish()
	if s.untold {
		s.env.metrics.Ended(s.last())
	}
}

// finish hands on all that there is of a process but its metrics. The lock is held.
func (s *server) finish() {
	s.process.finish()
	s.tell()
}

// last is what the process was like when it was heard of last. The lock is held.
func (s *server) last() processState {
	last := s.process.state()
	last.over = true
	return last
}

// lost is told that the server can't be heard of.
func (s *server) lost(err error, pause time.Duration) {
	s.env.telemetry.connectionFailed(socketPublish)
	s.memory.Disconnected(s.buffer)
	s.buffer = nil
	s.disconnect(err)
	s.health.Failed(err)
	if since, say := s.failing.Say(s.env.now()); say {
		s.logger.Warn("The server cannot be reached, or was lost: it is tried again", zap.Error(err),
			zap.Duration("pause", pause), zap.Int("failures_since_last_line", since))
	}
}

// disconnect ends what a connection began, if there is one. The process may come back.
func (s *server) disconnect(why error) {
	if s.detach == nil {
		return
	}
	s.detach() // whose messages came is known then
	s.detach = nil
	s.mu.Lock()
	s.finish()
	s.connected = false
	of := s.process.origin
	s.mu.Unlock()
	s.env.telemetry.servers(-1)
	s.env.saidGone(of, s.connectedAt, why)
}

// receive handles a message, or keeps it until it is known whose it is.
func (s *server) receive(m zmtp.Message) {
	if len(m) != 1 {
		s.saidBad(badParts, errors.New("expected a message of one part"), zap.Int("parts", len(m)))
		return
	}
	now := s.env.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = now
	defer func() { _ = s.held() }() // where it is too much, the server is disconnected
	for s.meeting.goesOn || !s.handle(m[0], now) {
		if s.meeting.keep(m[0], now, s.env.config.Limits.MaxMessageBytes) {
			return
		}
		// It can't be waited for who that is.
		s.settle(identity{})
	}
}

// handle handles a message that came at a time. ok is false where it is of another life of
// the server than is known, which is asked who it is then. The lock is held.
func (s *server) handle(message []byte, at time.Time) (ok bool) {
	var r rbkit.Reader
	dialect, err := rbkit.DialectOf(message)
	if err == nil {
		if err = r.Open(dialect, message); err == nil {
			s.speaks(dialect)
		} else {
			dialect = 0 // what can't be opened doesn't say it
		}
		if !s.process.follows(dialect, r.Header()) {
			if s.control != nil {
				s.meeting.begin(true)
				s.control.correctSoon()
				return false
			}
			s.begin(identity{})
		}
	}
	s.process.dialect = cmp.Or(dialect, s.process.dialect)
	// What can't be opened is a message all the same, without events.
	if wrong := s.read(&r, len(message), at); err == nil {
		err = wrong
	}
	if errors.Is(err, errShutdown) {
		s.logger.Warn("The time of the shutdown is over: the rest of a message is dropped", zap.Int("bytes", len(message)))
		return true
	}
	if errors.As(err, new(*budget.Error)) {
		return true // the server is disconnected for it
	}
	if err != nil {
		what := ""
		if bad := (*rbkit.ProtocolError)(nil); errors.As(err, &bad) {
			what = bad.Problem.String()
		}
		s.saidBad(what, err, zap.Int("bytes", len(message)))
		return true
	}
	s.bad.Over()
	return true
}

// speaks is told of the dialect of a message. The lock is held.
func (s *server) speaks(dialect rbkit.Dialect) {
	if s.dialect != dialect {
		s.dialect = dialect
		s.seldom(&s.dialects, s.logger.Info, "The messages of the server show its dialect", zap.Stringer("dialect", dialect))
	}
}

// read has the process go through the events of a message of so many bytes. The lock is
// held.
func (s *server) read(r *rbkit.Reader, bytes int, at time.Time) error {
	p := s.process
	p.message(bytes, at)
	over, err := p.read(r)
	if over {
		err = s.readOn(r, at)
		p = s.process
	}
	p.handOnDue(at)
	s.tell()
	return err
}

func (s *server) saidBad(what string, err error, fields ...zap.Field) {
	s.env.telemetry.badMessage(what)
	if since, say := s.bad.Say(s.env.now()); say {
		s.logger.Warn("A message of the server is not what it should be: its events before that count",
			append(fields, zap.Error(err), zap.Int("messages_since_last_line", since))...)
	}
}

// state is what a collection of metrics has to say of the process, if anything: what it is
// like, or once more what it was like when it was lost.
func (s *server) state() (processState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.connected:
		return s.process.state(), true
	case s.untold:
		s.untold = false
		return s.last(), true
	default:
		return processState{}, false
	}
}
