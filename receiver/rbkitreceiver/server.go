// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

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
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// server follows one configured server. Its goroutine owns the fields above the lock.
type server struct {
	env    *environment
	config *ServerConfig
	logger *zap.Logger
	// origins are the settings of the origins of its lives.
	origins origin.Settings
	// processes are the settings of its processes.
	processes *process.Settings
	// health is its part of the component's.
	health *serverhealth.Part
	// control is nil where nothing is asked of the server.
	control *control
	// memory is the memory of the server, and buffer the part of the connection that
	// receives; nil: there is no connection.
	memory *servermemory.Memory
	buffer *servermemory.Buffer
	// endSession ends the other work of a connection; nil: there is no connection.
	endSession  func()
	connectedAt time.Time
	// failing is a burst of failed connections, bad one of malformed messages.
	failing, bad logline.Burst
	// connects, restarts, dialects and full limit log lines of frequent events.
	connects, restarts, dialects, full logline.Seldom

	mu sync.Mutex
	// peer is the other side of the last connection, and dialect that of the last message.
	peer    net.Addr
	dialect rbkit.Dialect
	// process is the life that sent the last data, nil: none yet. identity is its identity,
	// and connectedAs the identity at the begin of the last connection.
	process               *process.Process
	identity, connectedAs origin.Identity
	// lastReply is the last reply; nil: the server was not asked, or didn't answer.
	// lastHeard is the time of the last message or reply.
	lastReply *rbkit.HandshakeReply
	lastHeard time.Time
	// first is when it was seen first, in Unix milliseconds: no two lives have the same.
	first int64
	// connected says that the process is reachable. uncollected says that no collection of
	// metrics has had its state since then: a process that connects again before a
	// collection hasn't ended.
	connected, uncollected bool
	// identification is open while the receiver doesn't know the sender of messages.
	identification identification
	// limited are the limits that were reached.
	limited [len(process.Limits)]bool
	// unmeasuredLogged says that the statistics without a metric were logged.
	unmeasuredLogged bool
}

func newServer(env *environment, config *ServerConfig) *server {
	s := &server{
		env: env, config: config,
		logger:    env.Logger.With(zap.String("server", config.Publish)),
		health:    env.Health.Server(config.Publish),
		memory:    servermemory.New(env.Memory, env.config.Limits.MaxServerMemory),
		processes: env.processSettings(),
		origins:   originsOf(env.config, config, env.Host),
	}
	if config.Request != "" {
		s.control = newControl(env, config, s.logger)
		s.control.memory = s.memory
	}
	return s
}

// follow receives the messages of the server until the context ends, with as many
// connections as that takes. Then it restores the server.
func (s *server) follow(ctx context.Context) {
	options := s.env.zmtpOptions(s.config)
	options.Room = func(bytes int) error { return s.memory.HoldBuffer(s.buffer, bytes) }
	var releasing sync.WaitGroup
	releasing.Go(func() { s.freeOnDemand(ctx) })
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
		Lost:      s.connectionLost,
	}
	_ = following.Run(ctx) // its end is that of the context
	s.disconnect(process.ErrShutdown)
	if s.control != nil {
		s.control.restore(s.env.Delivering)
	}
}

// connect begins a connection. Messages arrive from now on, while the receiver asks for the
// server's identity.
func (s *server) connect(ctx context.Context, peer net.Addr) {
	s.failing.Over()
	s.connectedAt = s.env.Now()
	s.mu.Lock()
	s.peer = peer
	s.identification.begin(false)
	s.mu.Unlock()
	s.env.counters.ServersConnected(1)
	s.endSession = s.startSession(ctx)
}

// fieldsOf returns the log fields of a server's reply.
func fieldsOf(hello *rbkit.HandshakeReply) []zap.Field {
	if hello == nil {
		return nil
	}
	return []zap.Field{
		zap.String("process", names.ValidString(hello.ProcessName)), zap.Uint64("pid", hello.PID),
		zap.String("version", names.ValidString(hello.ServerVersion)), zap.Stringer("dialect", hello.Dialect),
	}
}

// beginLife begins a life of the server, and ends the previous one. The lock is held.
func (s *server) beginLife(who origin.Identity) {
	restarted := s.process != nil
	if restarted {
		s.endLife()
		s.env.counters.Restarted()
	}
	s.newLife(who)
	if restarted {
		s.env.LogSeldom(&s.restarts, s.logger.Warn, "The server was restarted", fieldsOf(who.State)...)
		s.env.recordRestarted(s.process.Origin)
	}
}

// newLife makes the process of a life. The lock is held.
func (s *server) newLife(who origin.Identity) {
	now := s.env.Now()
	s.first = max(s.first+1, now.UnixMilli())
	s.identity, s.lastReply = who, who.State
	s.process = process.New(s.processes, origin.New(&s.origins, who, now, s.first), s.holdMemory)
	if who.State != nil {
		s.lastHeard = now
		s.process.SetServerState(who.State)
	}
}

// nameLife gives the process its name, if the server hadn't identified itself before. The
// lock is held.
func (s *server) nameLife(hello *rbkit.HandshakeReply) {
	if s.identity.State != nil || s.identification.open {
		return
	}
	s.identity = origin.Identity{State: hello, Local: origin.FindLocal(s.peer, hello)}
	if s.connectedAs.State == nil {
		s.connectedAs = s.identity
	}
	s.process.SetOrigin(origin.New(&s.origins, s.identity, s.process.Origin.Begun, s.first))
}

// endLife delivers all data of a process, and its last metrics. The lock is held.
func (s *server) endLife() {
	s.deliver()
	if s.uncollected {
		s.env.metrics.Ended(s.lastState())
	}
}

// deliver delivers all data of a process except metrics. The lock is held.
func (s *server) deliver() {
	s.process.Deliver()
	s.report()
}

// lastState returns the last state of a process that has ended. The lock is held.
func (s *server) lastState() process.State {
	last := s.process.State()
	last.Ended = true
	return last
}

// connectionLost handles a connection that failed or ended.
func (s *server) connectionLost(err error, pause time.Duration) {
	s.env.counters.ConnectionFailed(counters.SocketPublish)
	s.memory.Disconnected(s.buffer)
	s.buffer = nil
	s.disconnect(err)
	s.health.Failed(err)
	s.env.LogSeldom(&s.failing, s.logger.Warn, "The connection to the server failed: retrying", zap.Error(err),
		zap.Duration("pause", pause))
}

// disconnect ends a connection, if there is one. The process may connect again.
func (s *server) disconnect(why error) {
	if s.endSession == nil {
		return
	}
	s.endSession() // the sender of all messages is known then
	s.endSession = nil
	s.mu.Lock()
	s.deliver()
	s.connected = false
	of := s.process.Origin
	s.mu.Unlock()
	s.env.counters.ServersConnected(-1)
	s.env.recordGone(of, s.connectedAt, why)
}

// receive handles a message, or holds it until its sender is known.
func (s *server) receive(m zmtp.Message) {
	if len(m) != 1 {
		s.reportBad(counters.BadParts, errors.New("expected a message of one part"), zap.Int("parts", len(m)))
		return
	}
	now := s.env.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastHeard = now
	defer func() { _ = s.holdMemory() }() // where it is too much, the server is disconnected
	for s.identification.open || !s.handle(m[0], now) {
		if s.identification.hold(m[0], now, s.env.config.Limits.MaxMessageBytes) {
			return
		}
		// There is no memory to wait for the identity.
		s.identified(origin.Identity{})
	}
}

// handle handles a message that arrived at a time. ok is false if it belongs to an unknown
// life of the server; the receiver then asks for the identity. The lock is held.
func (s *server) handle(message []byte, at time.Time) (ok bool) {
	var r rbkit.Reader
	dialect, err := rbkit.DialectOf(message)
	if err == nil {
		if err = r.Open(dialect, message); err == nil {
			s.noteDialect(dialect)
		} else {
			dialect = 0 // a message that can't be opened has no dialect
		}
		if !s.process.Follows(dialect, r.Header()) {
			if s.control != nil {
				s.identification.begin(true)
				s.control.requestCorrection()
				return false
			}
			s.beginLife(origin.Identity{})
		}
	}
	// A message that can't be opened counts as a message without events.
	if wrong := s.readEvents(&r, dialect, len(message), at); err == nil {
		err = wrong
	}
	if errors.Is(err, process.ErrShutdown) {
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
		s.reportBad(what, err, zap.Int("bytes", len(message)))
		return true
	}
	s.bad.Over()
	return true
}

// noteDialect logs a change of the dialect. The lock is held.
func (s *server) noteDialect(dialect rbkit.Dialect) {
	if s.dialect != dialect {
		s.dialect = dialect
		s.env.LogSeldom(&s.dialects, s.logger.Info, "Detected the dialect of the server", zap.Stringer("dialect", dialect))
	}
}

// readEvents makes the process read the events of a message of so many bytes. The lock is
// held.
func (s *server) readEvents(r *rbkit.Reader, dialect rbkit.Dialect, bytes int, at time.Time) error {
	p := s.process
	p.BeginMessage(dialect, bytes, at)
	over, err := p.ReadEvents(r)
	if over {
		err = s.restartWithin(r, at)
		p = s.process
	}
	p.DeliverDue(at)
	s.report()
	return err
}

func (s *server) reportBad(what string, err error, fields ...zap.Field) {
	s.env.counters.BadMessage(what)
	s.env.LogSeldom(&s.bad, s.logger.Warn, "A message of the server is malformed: only the events before the error count",
		append(fields, zap.Error(err))...)
}

// state returns the state of the process for a collection of metrics: the current one, or
// once more the last one.
func (s *server) state() (process.State, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.connected:
		return s.process.State(), true
	case s.uncollected:
		s.uncollected = false
		return s.lastState(), true
	default:
		return process.State{}, false
	}
}

// deliverInterval is how often old data is delivered while no messages arrive.
const deliverInterval = time.Second

// startSession starts the goroutines of a connection beside the receiving one: they
// identify the server, switch on the wanted profiles, send commands, and deliver old data.
// The result ends them and waits for their end.
func (s *server) startSession(ctx context.Context) (detach func()) {
	ctx, end := context.WithCancel(ctx)
	var attending sync.WaitGroup
	attending.Go(func() {
		s.identify(ctx)
		attending.Go(func() { s.deliverOld(ctx) })
		if s.control != nil {
			s.sendCommands(ctx)
		}
		// At the end the sender of the last messages is known in any case.
		s.identify(ctx)
	})
	return func() {
		end()
		attending.Wait()
		if s.control != nil {
			s.control.close()
		}
	}
}

// deliverOld delivers old data until the context ends.
func (s *server) deliverOld(ctx context.Context) {
	ticker := time.NewTicker(deliverInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			s.process.DeliverDue(s.env.Now())
			s.report()
			s.mu.Unlock()
		}
	}
}

// sendCommands sends commands to the server until the context ends.
func (s *server) sendCommands(ctx context.Context) {
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
		if s.correctState(ctx) {
			pauses.Reset()
		} else {
			again = time.After(pauses.Pause())
		}
	}
	s.control.requestCorrection()
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

// correctState corrects the state of the server, and remembers its replies. ok is false if
// the server doesn't answer.
func (s *server) correctState(ctx context.Context) (ok bool) {
	return s.control.correct(ctx, func(h *rbkit.HandshakeReply) {
		said := *h
		s.setState(&said)
	})
}

// Why a server is disconnected.
const (
	reasonBudget = "memory_budget"
	reasonServer = "max_server_memory"
)

// bytesOfServer is the memory that a server takes without its process, about.
const bytesOfServer = 64 << 10

// freeOnDemand frees the server's memory whenever the memory budget demands it, until the
// context ends.
func (s *server) freeOnDemand(ctx context.Context) {
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
func (s *server) freeMemory(why error) {
	s.mu.Lock()
	if s.process != nil {
		s.endLife()
		s.newLife(s.identity)
	}
	dropped := len(s.identification.held)
	s.identification.held, s.identification.size = nil, 0
	s.memory.Renew()
	s.mu.Unlock()
	reason := reasonBudget
	if short := (*budget.Error)(nil); errors.As(why, &short) && short.Setting == servermemory.Setting {
		reason = reasonServer
	}
	s.env.counters.Disconnected(reason)
	s.env.LogSeldom(&s.full, s.logger.Warn, "The server is disconnected for a while: its data needs too much memory. Its counters start again at zero",
		zap.Error(why), zap.Int("messages_dropped", dropped))
}

// holdMemory counts the memory of the server, without the buffers of its connections. The
// lock is held.
func (s *server) holdMemory() error {
	bytes := bytesOfServer + s.identification.size
	if s.process != nil {
		bytes += s.process.Memory()
	}
	return s.memory.Hold(bytes)
}

// identify asks for the server's identity as long as it is unknown.
func (s *server) identify(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.identification.open {
		number, peer := s.identification.number, s.peer
		s.mu.Unlock()
		who := s.askIdentity(ctx, peer)
		s.mu.Lock()
		if s.identification.open && s.identification.number == number {
			s.identified(who)
		}
	}
}

// askIdentity asks for the server's identity, several times within the timeout: the socket
// that answers may open a moment after the one that publishes.
func (s *server) askIdentity(ctx context.Context, peer net.Addr) origin.Identity {
	if s.control == nil {
		return origin.Identity{}
	}
	until, pauses := s.env.Now().Add(s.env.config.Timeout), backoff.New(s.env.config.Reconnect)
	for {
		if hello, ok := s.control.queryState(ctx); ok {
			return origin.Identity{State: &hello, Local: origin.FindLocal(peer, &hello)}
		}
		pause := pauses.Pause()
		if s.env.Now().Add(pause).After(until) {
			return origin.Identity{}
		}
		select {
		case <-ctx.Done():
			return origin.Identity{}
		case <-time.After(pause):
		}
	}
}

// identified ends the identification with an identity, which may be unknown. It handles the
// held messages up to one of yet another life. The lock is held.
func (s *server) identified(who origin.Identity) {
	other := s.process == nil || s.identification.restarted || s.identity.IsOther(who)
	if other {
		s.beginLife(who)
	} else if who.State != nil {
		s.identity = who
		s.process.SetServerState(who.State)
	}
	s.connectedAs = who
	if who.State != nil {
		s.lastReply = who.State
	}
	if s.control != nil {
		s.control.switchedOn.connected(other)
	}
	s.reportHealth()
	if !s.connected {
		s.connected, s.uncollected = true, true
		s.env.LogSeldom(&s.connects, s.logger.Info, "Connected to the server", fieldsOf(who.State)...)
		s.env.recordConnected(s.process.Origin)
	}
	kept := s.identification.end()
	for i, m := range kept {
		if !s.handle(m.data, m.at) {
			s.identification.holdAll(kept[i:])
			return
		}
	}
}

// reportHealth reports whether the server answered, if it has an address for requests. The
// lock is held.
func (s *server) reportHealth() {
	if s.control != nil && s.lastReply == nil {
		s.health.Failed(errNoAnswer)
		return
	}
	s.health.Up()
}

var errNoAnswer = errors.New("the server publishes messages, but doesn't answer at the address of request")

// restartWithin begins another life of the server at an event within a message, and reads
// the rest of the message. That life has existed since the begin of the connection, and
// identified itself then. The lock is held.
func (s *server) restartWithin(r *rbkit.Reader, at time.Time) error {
	s.beginLife(s.connectedAs)
	if s.control != nil {
		s.control.switchedOn.connectedToOther()
	}
	return s.process.ReadFrom(r, at)
}

// setState remembers a reply of the server.
func (s *server) setState(h *rbkit.HandshakeReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastReply, s.lastHeard = h, s.env.Now()
	if s.process != nil {
		s.nameLife(h)
		if s.connected {
			s.health.Up()
		}
		s.process.SetServerState(h)
	}
}

// report adds the totals of the process to the receiver's own counters, and logs each limit
// that the server reached, once. The lock is held.
func (s *server) report() {
	s.process.CountTotals(s.env.counters)
	for i := range process.Limits {
		if s.limited[i] || process.Limits[i].Reached(s.process) == 0 {
			continue
		}
		s.limited[i] = true
		s.logger.Warn("The server has reached a limit",
			zap.String("setting", "limits."+process.Limits[i].Setting), zap.String("then", process.Limits[i].Then))
	}
	if stats, arrived := s.process.NewStats(); arrived {
		s.logUnmeasured(stats)
	}
}

// maxLoggedKeys is how many keys of statistics a log line has.
const maxLoggedKeys = 16

// logUnmeasured logs, once for a server, the statistics that have no metric. The lock is
// held.
func (s *server) logUnmeasured(of process.Stats) {
	if s.unmeasuredLogged || !s.processes.Measured || s.env.config.Metrics.RubyGcStat.Enabled {
		return
	}
	keys := unmeasuredKeys(of)
	if len(keys) == 0 {
		return
	}
	s.unmeasuredLogged = true
	s.logger.Info("The server sends statistics that have no metric. To receive them under their keys, set metrics.ruby.gc.stat.enabled to true",
		zap.Int("count", len(keys)), zap.Strings("keys", keys[:min(len(keys), maxLoggedKeys)]))
}
