// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// server is a configured server. Its own goroutine owns it, except for the fields behind the lock.
type server struct {
	env    *environment
	config *ServerConfig
	logger *zap.Logger
	// health is the server's part of the component's health.
	health *serverhealth.Part
	dialer *link.Dialer
	// settings are the settings of its sessions; tasks are its tasks.
	settings session.Settings
	tasks    *session.Tasks
	// memory counts the memory of the server. full receives a shortage after the connections are closed for it.
	memory *servermemory.Memory
	full   chan servermemory.Shortage
	// orders are the orders of operators; nil means that there are none.
	orders chan *session.Order
	// spoke is the protocol of the last link; empty means that there was none.
	spoke       Protocol
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
	output *output
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

func newServer(env *environment, config *ServerConfig, secure *tls.Config) *server {
	tasks, err := env.config.tasks()
	if err != nil {
		panic(err) // Validate has checked it
	}
	s := &server{
		env: env, config: config, logger: env.Logger.With(zap.String("server", config.Endpoint)),
		health: env.Health.Server(config.Endpoint), tasks: session.NewTasks(tasks),
		memory: servermemory.New(env.run.Memory, env.config.Limits.MaxServerMemory), full: make(chan servermemory.Shortage, 1),
		restarting: backoff.New(env.config.Reconnect), failures: failures{repeatAfter: env.repeatAfter},
	}
	c := env.config
	s.dialer = &link.Dialer{Settings: link.Settings{
		Endpoint: config.Endpoint, TLS: secure, Protocol: c.Protocol, Timeout: c.Timeout, Context: env.run.Leaving, Memory: s.memory,
		GP: gp.Config{
			Version: uint16(c.GP.Version), Codes: c.GP.codes(), MaxFrame: c.GP.MaxFrameBytes,
			Heartbeat: c.GP.Heartbeat, MaxUnanswered: c.GP.MaxUnanswered, ProbeTimeout: c.GP.ProbeTimeout, Provoke: c.Protocol == ProtocolGP,
			WriteTimeout: c.Timeout, Location: env.zone,
		},
		Console: console.Config{
			Zone: env.zone, MaxReplyBytes: c.Limits.MaxReplyBytes,
			ConnectTimeout: c.Timeout, WriteTimeout: c.Timeout, AnswerTimeout: c.AnswerTimeout,
			AbortTimeout: min(c.Timeout, c.ShutdownTimeout/4),
		},
	}}
	s.settings = session.Settings{
		PerMethod: c.PerMethod, RecursionCheck: c.RecursionCheck, RecordDetails: c.RecordDetails,
		StateInterval: c.StateInterval, RecordsInterval: c.GP.RecordsInterval,
		Timeout: c.Timeout, AnswerTimeout: c.AnswerTimeout, Reconnect: c.Reconnect,
		MaxCommands: c.Limits.MaxCommands, MaxPatternCommands: c.Limits.MaxPatternCommands, MaxDetails: c.Limits.MaxDetails,
		Timezone: c.Timezone, IsForwarded: env.forwards, OwnSessions: s.dialer.Sessions,
		Shutdown: env.run.Delivering, LastAsking: env.run.Leaving,
		Counters: env.counters, Logger: s.logger, Now: env.Now,
	}
	return s
}

// follow runs the server until ctx ends, over all losses of connections. Then it sends the owed resets.
func (s *server) follow(ctx context.Context) {
	pauses := backoff.New(s.env.config.Reconnect)
	watching, endWatch := context.WithCancel(context.WithoutCancel(ctx))
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watchMemory(watching) })
	defer s.memory.Close()
	defer watcher.Wait()
	defer endWatch()
	for {
		began := s.env.Now()
		s.enter(phaseProbing)
		err := s.serve(ctx)
		s.freeIfFull()
		if version := (*gp.VersionError)(nil); errors.As(err, &version) && ctx.Err() == nil {
			s.giveUp(ctx, err)
			s.restoreClasses(s.env.run.Leaving)
			return
		}
		s.enter(phaseUnreached)
		if errors.Is(err, session.ErrShutdown) {
			return
		}
		if s.env.Now().Sub(began) > s.env.config.Reconnect.MaxInterval {
			pauses.Reset()
		}
		if ctx.Err() != nil || !s.rest(ctx, pauses.Pause(), err) {
			s.restoreClasses(s.env.run.Leaving)
			return
		}
	}
}

func (s *server) enter(p phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = p
}

// serve connects to the server and runs its sessions, until the link is lost or ctx ends. The error is never nil.
func (s *server) serve(ctx context.Context) error {
	waiting := time.AfterFunc(s.env.silentAfter, s.reportSilence)
	defer waiting.Stop()
	l, err := s.env.connect(ctx, s.dialer, s.spoke)
	if err != nil {
		return err
	}
	defer l.Close()
	who, err := s.settings.Identify(ctx, l)
	waiting.Stop()
	if err != nil {
		s.spoke = "" // the server may have changed its protocol
		return err
	}
	s.spoke = Protocol(l.Protocol)
	s.connected(who)
	err = s.ask(ctx, l)
	s.disconnected(err)
	return err
}

// ask runs sessions for one process after the other over a link, until the link is lost or ctx ends.
func (s *server) ask(ctx context.Context, l *session.Link) error {
	for pause := time.Duration(0); ; {
		inputs := session.Inputs{Orders: s.orders, Full: s.full, Memory: s.memory}
		err := session.New(l, s.work, inputs).Run(ctx, pause)
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
		s.output.process.Identified(other.Who.Sessions, other.Who.HasSessions)
	}
}

// connected handles a process that has identified itself over a new link.
func (s *server) connected(who session.Identity) {
	s.failures.over()
	s.unanswered.Over()
	s.mu.Lock()
	same := s.work != nil && !s.work.Who().IsOther(who)
	if !same {
		s.beginProcess(who)
	}
	s.unreported, s.phase = true, phaseConnected
	s.connectedAt = s.env.Now()
	s.mu.Unlock()
	s.work.Identified(who)
	if same {
		s.output.process.Reconnected()
	}
	s.health.Up()
	s.env.counters.ServersConnected(1)
	if since, due := s.connects.Count(s.env.Now()); due {
		s.logger.Info("Connected to the server", append(identityFields(who), zap.Int("times_since_last_line", since))...)
	}
	s.env.logs.ServerConnected(s.output.origin)
}

// identityFields returns the log fields of an identity.
func identityFields(who session.Identity) []zap.Field {
	return []zap.Field{
		zap.String("protocol", who.Protocol), zap.Int64("pid", who.PID), zap.String("version", text.Short(who.Version)),
	}
}

// beginProcess switches to another process of the server. The caller holds the lock.
func (s *server) beginProcess(who session.Identity) {
	restarted := s.work != nil
	if restarted && s.unreported {
		s.env.metrics.Ended(s.output.state(true))
	}
	if s.dialer.IsLocal(who.PID) {
		who.Host = s.env.Host
	}
	s.pid, s.output = who.PID, s.newOutput(who)
	s.work = session.NewWork(&s.settings, s.tasks, s.output.process, s.output, who)
	if !restarted {
		return
	}
	s.env.counters.Restarted()
	if since, due := s.restarts.Count(s.env.Now()); due {
		s.logger.Warn("The server was restarted", append(identityFields(who), zap.Int("times_since_last_line", since))...)
	}
	s.env.logs.ServerRestarted(s.output.origin, "The server was restarted")
}

// newOutput returns the output of a process with empty state.
func (s *server) newOutput(who session.Identity) *output {
	c := s.env.config
	methods, setting := c.methodsOfServer()
	p := process.New(process.Settings{
		MaxMethods: methods, MethodsSetting: setting, MaxInventory: c.Limits.MaxInventory, MaxTreeNodes: c.Limits.MaxTreeNodes,
		RecursionCheck: c.RecursionCheck, MaxCommands: c.Limits.MaxCommands * c.Limits.MaxPatternCommands,
		Memory: s.memory, Counters: s.env.counters, Logger: s.logger, Now: s.env.Now,
	})
	return &output{env: s.env, origin: s.newOrigin(who, p.Begun), process: p}
}

// newOrigin returns the origin of a process.
func (s *server) newOrigin(who session.Identity, begun time.Time) *signals.Origin {
	c := s.env.config
	of := signals.Server{
		Tracer: metadata.Type.String(), Endpoint: s.config.Endpoint, ServiceName: cmp.Or(s.config.ServiceName, c.ServiceName), Host: s.env.Host,
	}
	return of.Origin(c.Resource(), who, begun)
}

// restartPause returns the pause before the first command to another process: a server may report another process at
// each check.
func (s *server) restartPause() time.Duration {
	if s.env.Now().Sub(s.output.origin.Begun) > s.env.config.Reconnect.MaxInterval {
		s.restarting.Reset()
	}
	return s.restarting.Pause()
}

// disconnected handles the loss of the server. The process may come back.
func (s *server) disconnected(why error) {
	s.enter(phaseUnreached)
	s.env.counters.ServersConnected(-1)
	s.env.logs.ServerGone(s.output.origin, s.connectedAt, why)
}

// state returns a snapshot for metrics, if there is one: of the present, or once more the last one.
func (s *server) state() (processState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == phaseConnected:
		return s.output.state(false), true
	case s.unreported:
		s.unreported = false
		return s.output.state(true), true
	default:
		return processState{}, false
	}
}

// giveUp sends the owed resets once and waits for the end of ctx: another try would have the same result.
func (s *server) giveUp(ctx context.Context, err error) {
	s.enter(phaseGivenUp)
	s.env.counters.ConnectionFailed()
	s.health.GivenUp(err)
	s.logger.Error("The server does not know the version of the protocol, and the receiver gives up: set gp.version, and restart the collector", zap.Error(err))
	s.restoreClasses(ctx)
	repeat := time.NewTicker(s.env.repeatAfter)
	defer repeat.Stop()
	for {
		select {
		case <-repeat.C:
			s.logger.Error("The receiver still sends this server no commands: set gp.version, and restart the collector", zap.Error(err))
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
func (s *server) restoreClasses(ctx context.Context) {
	if s.work == nil || !s.work.HasLeftovers() {
		return
	}
	l, err := s.env.connect(ctx, s.dialer, Protocol(s.work.Who().Protocol))
	if err != nil {
		s.work.FailRestore(session.Because(ctx, err))
		return
	}
	defer l.Close()
	s.work.Restore(ctx, l)
}

// rest pauses before the next try. ok is false if ctx has ended.
func (s *server) rest(ctx context.Context, pause time.Duration, why error) (ok bool) {
	s.env.counters.ConnectionFailed()
	s.health.Failed(why)
	if !isSilence(why) {
		s.unanswered.Over()
	}
	if since, due := s.failures.say(why, s.env.Now()); due {
		s.logger.Warn("The server cannot be reached, or was lost: the receiver tries again", zap.Error(why),
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

// The interval of log lines for lasting failures, and the time after which a server without an identity is reported as
// silent.
const (
	usualRepeatAfter = 10 * time.Minute
	usualSilentAfter = 8 * time.Second
)

// reportSilence reports that a server has not identified itself so far, once until it does or fails for another reason.
// Any goroutine may call it.
func (s *server) reportSilence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != phaseProbing {
		return // the server has just identified itself, or failed
	}
	s.health.Failed(errUnanswered)
	if since, due := s.unanswered.Count(s.env.Now()); due {
		s.logger.Warn("The server has not identified itself: its process hangs, or another service listens at the port. The receiver waits",
			zap.Duration("after", s.env.silentAfter), zap.Int("times_since_last_line", since))
	}
}

var errUnanswered = errors.New("it accepts connections, but has not identified itself")

// isSilence reports whether a failure is a timeout without any reply.
func isSilence(why error) bool {
	return errors.Is(why, link.ErrSilent) || errors.Is(why, session.ErrSlow) || errors.Is(why, console.ErrTimeout)
}

// failures decides which failures of a server are logged: the first of a burst, the first with another reason, and a
// lasting one.
type failures struct {
	repeatAfter time.Duration
	burst       logline.Burst
	changes     logline.Seldom
	// reason and at are those of the last log line; count is the number of failures since.
	reason string
	at     time.Time
	count  int
}

func (f *failures) over() { f.burst.Over() }

// say reports whether a failure is logged, and how many there were since the last line.
func (f *failures) say(why error, now time.Time) (since int, due bool) {
	f.count++
	reason := withoutDigits(why.Error())
	_, due = f.burst.Count(now)
	if !due && reason != f.reason && f.reason != "" {
		_, due = f.changes.Count(now)
	}
	if !due && (f.reason == "" || now.Sub(f.at) < f.repeatAfter) {
		return 0, false
	}
	since, f.count = f.count, 0
	f.reason, f.at = reason, now
	return since, true
}

// withoutDigits removes digits: port numbers, for example, differ in each text of the same error.
func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// The memory of a server has an account in the memory budget of the process, with limits.max_server_memory as its own
// limit. If either limit is reached, the receiver disconnects the server:
//
//   1. It closes the connections: no more data arrive, and commands end.
//   2. It frees the state of the process. It keeps the classes with instrumentation, because resets have to
//      remove it.
//   3. It connects again after a pause. Sums begin at zero.

// watchMemory closes the server's connections on a shortage of memory, and passes the shortage to the server's
// goroutine.
func (s *server) watchMemory(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case shortage := <-s.memory.Over():
			if !s.memory.IsCurrent(shortage) {
				continue
			}
			s.memory.HangUp()
			select {
			case <-s.full: // it may belong to an account that was closed since
			default:
			}
			s.full <- shortage // only this goroutine fills it
		}
	}
}

// freeIfFull frees the memory of the server if there is a shortage.
func (s *server) freeIfFull() {
	select {
	case short := <-s.full:
		s.free(short)
	default:
	}
}

// free frees the state of the process while no command runs.
func (s *server) free(short servermemory.Shortage) {
	if !s.memory.IsCurrent(short) {
		return // the memory has been freed since
	}
	s.mu.Lock()
	if s.work != nil {
		if s.unreported {
			s.env.metrics.Ended(s.output.state(true))
		}
		s.output = s.newOutput(s.work.Who())
		s.work.Renew(s.output.process, s.output)
	}
	s.mu.Unlock()
	s.memory.Renew()
	reason := counters.ReasonBudget
	if full := (*budget.Error)(nil); errors.As(short.Why, &full) && full.Setting == servermemory.Setting {
		reason = counters.ReasonServer
	}
	s.env.counters.Disconnected(reason)
	if since, due := s.disconnects.Count(s.env.Now()); due {
		s.logger.Warn("Server disconnected for a while: its data takes too much memory. Its sums begin at zero",
			zap.Error(short.Why), zap.Int("times_since_last_line", since))
	}
}
