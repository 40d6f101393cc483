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

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
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
		logger: env.Logger.With(zap.String("server", config.Publish)),
		health: env.Health.Server(config.Publish),
		memory: servermemory.New(env.Memory, env.config.Limits.MaxServerMemory),
	}
	if config.Request != "" {
		s.control = newControl(env, config, s.logger)
		s.control.memory = s.memory
	}
	return s
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
		s.control.leave(s.env.Delivering)
	}
}

// connect is told that the server can be heard of. Messages are received from now on,
// while it is asked who it is.
func (s *server) connect(ctx context.Context, peer net.Addr) {
	s.failing.Over()
	s.connectedAt = s.env.Now()
	s.mu.Lock()
	s.peer = peer
	s.meeting.begin(false)
	s.mu.Unlock()
	s.env.telemetry.servers(1)
	s.detach = s.attend(ctx)
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
		s.env.LogSeldom(&s.restarts, s.logger.Warn, "The server was restarted", about(who.hello)...)
		s.env.recordRestarted(s.process.origin)
	}
}

// renew begins a life of which nothing is known yet. The lock is held.
func (s *server) renew(who identity) {
	now := s.env.Now()
	s.first = max(s.first+1, now.UnixMilli())
	s.who, s.said = who, who.hello
	s.process = newProcess(s.env.outputs, newOrigin(s.env.config, s.config, s.env.Host, who.hello, who.local, now, s.first))
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
	s.process.introduce(newOrigin(s.env.config, s.config, s.env.Host, s.who.hello, s.who.local, s.process.origin.begun, s.first))
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
	s.env.LogSeldom(&s.failing, s.logger.Warn, "The connection to the server failed: retrying", zap.Error(err),
		zap.Duration("pause", pause))
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
	s.env.recordGone(of, s.connectedAt, why)
}

// receive handles a message, or keeps it until it is known whose it is.
func (s *server) receive(m zmtp.Message) {
	if len(m) != 1 {
		s.saidBad(badParts, errors.New("expected a message of one part"), zap.Int("parts", len(m)))
		return
	}
	now := s.env.Now()
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
		s.logger.Warn("shutdown_timeout is over: the rest of a message is dropped", zap.Int("bytes", len(message)))
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
		s.env.LogSeldom(&s.dialects, s.logger.Info, "Detected the dialect of the server", zap.Stringer("dialect", dialect))
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
	s.env.LogSeldom(&s.bad, s.logger.Warn, "A message of the server is malformed: only the events before the error count",
		append(fields, zap.Error(err))...)
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

// attendInterval is how often what is old enough is handed on where no messages come.
const attendInterval = time.Second

// attend does what a connected server needs beside being received from, in goroutines of
// its own: it asks who the server is, switches on what is wanted, gives orders at their
// time, and hands on what is old. What it returns ends it, and waits for that.
func (s *server) attend(ctx context.Context) (detach func()) {
	ctx, end := context.WithCancel(ctx)
	var attending sync.WaitGroup
	attending.Go(func() {
		s.meet(ctx)
		attending.Go(func() { s.handOnOld(ctx) })
		if s.control != nil {
			s.command(ctx)
		}
		// Whose messages came last is known at the end in any case.
		s.meet(ctx)
	})
	return func() {
		end()
		attending.Wait()
		if s.control != nil {
			s.control.hangUp()
		}
	}
}

// handOnOld hands on what is old enough until the context ends.
func (s *server) handOnOld(ctx context.Context) {
	ticker := time.NewTicker(attendInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			s.process.handOnDue(s.env.Now())
			s.tell()
			s.mu.Unlock()
		}
	}
}

// command gives the server orders until the context ends.
func (s *server) command(ctx context.Context) {
	config := s.env.config
	state, stopState := every(config.StateInterval)
	defer stopState()
	collect, stopCollect := every(config.TriggerGCInterval)
	defer stopCollect()
	dump, stopDump := every(config.ObjectSpaceSnapshotInterval)
	defer stopDump()
	// again is when a state that could not be corrected is tried again; nil: it was.
	var again <-chan time.Time
	pauses := backoff.New(config.Reconnect)
	correct := func() {
		again = nil
		if s.correct(ctx) {
			pauses.Reset()
		} else {
			again = time.After(pauses.Pause())
		}
	}
	s.control.correctSoon()
	for {
		select {
		case <-ctx.Done():
			return
		case <-state:
			correct()
		case <-again:
			correct()
		case <-s.control.soon:
			s.meet(ctx)
			correct()
		case <-collect:
			s.control.order(ctx, rbkit.TriggerGC)
		case <-dump:
			s.control.order(ctx, rbkit.ObjectSpaceSnapshot)
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

// correct corrects the state of the server, and remembers by what clock it samples. ok is
// false where the server doesn't answer.
func (s *server) correct(ctx context.Context) (ok bool) {
	return s.control.correct(ctx, func(h *rbkit.HandshakeReply) {
		said := *h
		s.says(&said)
	})
}

// Why a server is disconnected.
const (
	reasonBudget = "memory_budget"
	reasonServer = "max_server_memory"
)

// bytesOfServer is the memory that a server takes without its process, about.
const bytesOfServer = 64 << 10

// release frees the server's memory whenever it has to, until the context ends.
func (s *server) release(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case shortage := <-s.memory.Over():
			if s.memory.IsCurrent(shortage) {
				s.free(shortage.Why)
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
	s.memory.Renew()
	s.mu.Unlock()
	reason := reasonBudget
	if short := (*budget.Error)(nil); errors.As(why, &short) && short.Setting == servermemory.Setting {
		reason = reasonServer
	}
	s.env.telemetry.disconnected(reason)
	s.env.LogSeldom(&s.full, s.logger.Warn, "The server is disconnected for a while: its data needs too much memory. Its counters start again at zero",
		zap.Error(why), zap.Int("messages_dropped", dropped))
}

// held counts what the server takes in memory, beside the buffers of its connections. The lock
// is held.
func (s *server) held() error {
	bytes := bytesOfServer + s.meeting.size
	if s.process != nil {
		bytes += s.process.held()
	}
	return s.memory.Hold(bytes)
}

// meet asks the server who it is, as long as that is not known.
func (s *server) meet(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.meeting.goesOn {
		number, peer := s.meeting.number, s.peer
		s.mu.Unlock()
		who := s.ask(ctx, peer)
		s.mu.Lock()
		if s.meeting.goesOn && s.meeting.number == number {
			s.settle(who)
		}
	}
}

// ask asks the server who it is, again while there is time: the socket that answers may be
// there a moment after the one that publishes.
func (s *server) ask(ctx context.Context, peer net.Addr) identity {
	if s.control == nil {
		return identity{}
	}
	until, pauses := s.env.Now().Add(s.env.config.Timeout), backoff.New(s.env.config.Reconnect)
	for {
		if hello, ok := s.control.handshake(ctx); ok {
			return identity{hello: &hello, local: findLocal(peer, &hello)}
		}
		pause := pauses.Pause()
		if s.env.Now().Add(pause).After(until) {
			return identity{}
		}
		select {
		case <-ctx.Done():
			return identity{}
		case <-time.After(pause):
		}
	}
}

// settle ends a meeting: it is known who the server is, or will not be. Messages that came
// meanwhile are handled, up to one of yet another life. The lock is held.
func (s *server) settle(who identity) {
	other := s.process == nil || s.meeting.anew || s.who.isOther(who)
	if other {
		s.begin(who)
	} else if who.hello != nil {
		s.who = who
		s.process.samples.state(who.hello)
	}
	s.met = who
	if who.hello != nil {
		s.said = who.hello
	}
	if s.control != nil {
		s.control.switched.connected(other)
	}
	s.known()
	if !s.connected {
		s.connected, s.untold = true, true
		s.env.LogSeldom(&s.connects, s.logger.Info, "Connected to the server", about(who.hello)...)
		s.env.recordConnected(s.process.origin)
	}
	kept := s.meeting.end()
	for i, m := range kept {
		if !s.handle(m.data, m.at) {
			s.meeting.keepAll(kept[i:])
			return
		}
	}
}

// known says of the component's health whether it is known who the server is, where it can be
// asked. The lock is held.
func (s *server) known() {
	if s.control != nil && s.said == nil {
		s.health.Failed(errUnknown)
		return
	}
	s.health.Up()
}

var errUnknown = errors.New("the server publishes messages, but doesn't answer at the address of request")

// readOn begins another life of the server at an event that says so, and has it go through
// the rest of a message that came at a time. It has been there since the connection was
// made, and said then who it is; its messages have numbers that the life before might have
// had. The lock is held.
func (s *server) readOn(r *rbkit.Reader, at time.Time) error {
	s.begin(s.met)
	if s.control != nil {
		s.control.switched.connectedToOther()
	}
	s.process.now = at
	return s.process.readOn(r)
}

// says remembers what the server says of itself.
func (s *server) says(h *rbkit.HandshakeReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said, s.heard = h, s.env.Now()
	if s.process != nil {
		s.introduce(h)
		if s.connected {
			s.health.Up()
		}
		s.process.samples.state(h)
	}
}

// tell tells the receiver's counters what is new of the process, and the log which limits
// the server has reached, each once. The lock is held.
func (s *server) tell() {
	now := s.process.totals()
	s.env.telemetry.countSince(&s.process.totalsCounted, &now)
	s.process.totalsCounted = now
	for i := range limits {
		if s.limited[i] || limits[i].reached(s.process) == 0 {
			continue
		}
		s.limited[i] = true
		s.logger.Warn("The server has reached a limit",
			zap.String("setting", "limits."+limits[i].setting), zap.String("then", limits[i].then))
	}
	if s.process.toldStats {
		s.process.toldStats = false
		s.tellUnmeasured(s.process.stats)
	}
}

// maxLoggedKeys is how many keys of statistics a log line has.
const maxLoggedKeys = 16

// tellUnmeasured logs, once for a server, the statistics that no metric has. The lock is held.
func (s *server) tellUnmeasured(of stats) {
	if s.unmeasuredLogged || !s.env.measured || s.env.config.Metrics.RubyGcStat.Enabled {
		return
	}
	keys := of.unmeasured()
	if len(keys) == 0 {
		return
	}
	s.unmeasuredLogged = true
	s.logger.Info("The server sends statistics that have no metric. To receive them under their keys, set metrics.ruby.gc.stat.enabled to true",
		zap.Int("count", len(keys)), zap.Strings("keys", keys[:min(len(keys), maxLoggedKeys)]))
}
