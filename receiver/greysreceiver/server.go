// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// server is one that is configured. Its fields are those of the goroutine that follows it,
// but for what is behind the lock.
type server struct {
	env    *environment
	config *ServerConfig
	// tls is nil where none is spoken.
	tls    *tls.Config
	logger *zap.Logger
	// health is its part of the component's.
	health *serverhealth.Part
	// memory is what the server holds, and full has why it has to be disconnected, once its
	// connections are closed.
	memory *servermemory.Memory
	full   chan servermemory.Shortage
	// spoke is the protocol by which it was asked last; empty: none was.
	spoke       Protocol
	connectedAt time.Time
	// failing is a burst of links that can't be made or were lost, resetting one of resets
	// that failed, garbled one of answers that were not understood.
	failing, resetting, garbled logline.Burst
	// unanswered is a burst of connections on which nothing was answered for silentAfter.
	unanswered logline.Burst
	// bounds are those that were reached, and the failure that was said last.
	bounds saidBounds
	// elsewhere is a burst of recorded calls whose times are of another place.
	elsewhere logline.Burst
	// connects and restarts are what a server can make happen very often.
	connects, restarts, shed logline.Seldom

	// wants are what is asked of it, and numbered is the highest number that one had.
	wants    []*want
	numbered int
	// orders are what somebody wants of it; nil: nobody can. running is how many commands run.
	orders  chan *order
	running atomic.Int64
	// restarting are the pauses after restarts that follow each other.
	restarting *backoff.Backoff

	// dials is how often it was connected to, with connections under way, and answered how many of
	// these have read something: the server numbers the session of one somewhere between. sessions
	// is what the numbers say.
	dials    atomic.Int64
	answered atomic.Int64
	sessions sessionCount

	// remote is the other side of the last connection; nil: there was none.
	remote atomic.Pointer[net.Addr]

	mu sync.Mutex
	// phase is where it stands.
	phase phase
	// process is the life that was asked last, nil: none yet; who is what is known of it.
	process *process
	who     identity
	// connected says that it can be asked, and untold that no collection of metrics has had
	// it since it could. One that comes back before that has not ended.
	connected, untold bool
}

// phase is where a server stands.
type phase uint8

const (
	// phaseUnreached: nobody answers, or not so that it can be understood; it is tried again,
	// with pauses.
	phaseUnreached phase = iota
	// phaseProbing: it is connected to, asked what it speaks, and who it is.
	phaseProbing
	// phaseConnected: commands are asked.
	phaseConnected
	// phaseGivenUp: it doesn't know the version of the protocol that is set, and never will.
	phaseGivenUp
)

func (p phase) String() string {
	return [...]string{"unreached", "probing", "connected", "given_up"}[p]
}

func newServer(env *environment, config *ServerConfig, secure *tls.Config) *server {
	wants, err := newWants(env.config)
	if err != nil {
		panic(err) // Validate has tried it
	}
	return &server{
		env: env, config: config, tls: secure, logger: env.logger.With(zap.String("server", config.Endpoint)),
		health: env.health.Server(config.Endpoint),
		memory: servermemory.New(env.memory, env.config.Limits.MaxServerMemory), full: make(chan servermemory.Shortage, 1),
		wants: wants, numbered: len(wants), restarting: backoff.New(env.config.Reconnect),
	}
}

// follow asks the server what is wanted until the context ends, whatever happens to
// connections. Then it leaves the server as it was found.
func (s *server) follow(ctx context.Context) {
	pauses := backoff.New(s.env.config.Reconnect)
	watching, endWatch := context.WithCancel(context.WithoutCancel(ctx))
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watchMemory(watching) })
	defer s.memory.Close()
	defer watcher.Wait()
	defer endWatch()
	for {
		began := s.env.now()
		s.enter(phaseProbing)
		err := s.serve(ctx)
		s.freeIfFull()
		if version := (*gp.VersionError)(nil); errors.As(err, &version) && ctx.Err() == nil {
			s.giveUp(ctx, err)
			s.farewell(s.env.asking)
			return
		}
		s.enter(phaseUnreached)
		if errors.Is(err, errShutdown) {
			return
		}
		if s.env.now().Sub(began) > s.env.config.Reconnect.MaxInterval {
			pauses.Reset()
		}
		if ctx.Err() != nil || !s.rest(ctx, pauses.Pause(), err) {
			s.farewell(s.env.asking)
			return
		}
	}
}

func (s *server) enter(p phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = p
}

// giveUp leaves the server as it was found, if that can be, and waits for the end: there is
// nothing that another try could change.
func (s *server) giveUp(ctx context.Context, err error) {
	s.enter(phaseGivenUp)
	s.env.telemetry.connectionFailed()
	s.health.GivenUp(err)
	s.logger.Error("The server does not know the version of the protocol, and is not asked any more: set gp.version, and restart the collector", zap.Error(err))
	s.farewell(ctx)
	repeat := time.NewTicker(s.env.repeatAfter)
	defer repeat.Stop()
	for {
		select {
		case <-repeat.C:
			s.logger.Error("The server is still not asked: set gp.version, and restart the collector", zap.Error(err))
		case o := <-s.orders:
			o.failed(agentcontrol.Errorf(agentcontrol.Lost, "the server is not asked any more: %w", err))
		case short := <-s.full:
			s.free(short)
		case <-ctx.Done():
			return
		}
	}
}

// farewell leaves a server as it was found that no link is to at the end, where it can be
// connected to once more.
func (s *server) farewell(ctx context.Context) {
	if s.process == nil || len(s.process.owed) == 0 {
		return
	}
	link, err := s.env.connect(ctx, s, s.who.protocol)
	if err != nil {
		s.env.telemetry.reset(resetFailed)
		s.stays(s.process.owed, because(ctx, err))
		return
	}
	defer link.close()
	a := newAttending(s, link)
	a.process = s.process
	who := identity{protocol: link.protocol}
	// Where it doesn't say who it is, it is taken for the same.
	if err := a.askSessions(ctx, &who); err == nil && s.who.isOther(who) {
		return // nothing of ours is in another process
	}
	a.resetAtLast(ctx)
}

// stays says at the end what is left in classes.
func (s *server) stays(of []classes, why error) {
	patterns := make([]string, 0, len(of))
	for _, c := range of {
		patterns = append(patterns, c.pattern.String())
	}
	s.logger.Warn("What commands have put into classes stays there", zap.Strings("patterns", patterns), zap.Error(why))
}

// rest pauses before the server is tried again; ok is false where the context has ended.
func (s *server) rest(ctx context.Context, pause time.Duration, why error) (ok bool) {
	s.env.telemetry.connectionFailed()
	s.health.Failed(why)
	if !isSilence(why) {
		s.unanswered.Over()
	}
	if since, say := s.sayFailure(why, s.env.now()); say {
		s.logger.Warn("The server cannot be reached, or was lost: it is tried again", zap.Error(why),
			zap.Duration("pause", pause), zap.Int("failures_since_last_line", since))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case o := <-s.orders:
			o.failed(agentcontrol.Errorf(agentcontrol.Lost, "the server cannot be reached, or was lost, and is tried again: %w", why))
		case <-ctx.Done():
			return false
		case short := <-s.full:
			s.free(short)
		case <-timer.C:
			return true
		}
	}
}

// serve connects to the server, and asks what is wanted, until it is lost or the context
// ends. The error is never nil.
func (s *server) serve(ctx context.Context) error {
	waiting := time.AfterFunc(s.env.silentAfter, s.sayUnanswered)
	defer waiting.Stop()
	link, err := s.env.connect(ctx, s, s.spoke)
	if err != nil {
		return err
	}
	defer link.close()
	a := newAttending(s, link)
	who, err := a.meet(ctx)
	waiting.Stop()
	if err != nil {
		s.spoke = "" // it may speak something else by now
		return err
	}
	s.spoke = link.protocol
	s.settle(who)
	err = a.attend(ctx)
	s.disconnect(err)
	return err
}

// settle is told who the server is.
func (s *server) settle(who identity) {
	s.failing.Over()
	s.unanswered.Over()
	s.mu.Lock()
	other := s.process == nil || s.who.isOther(who)
	if other {
		s.begin(who)
	}
	s.connected, s.untold, s.phase = true, true, phaseConnected
	s.connectedAt = s.env.now()
	p := s.process
	s.mu.Unlock()
	p.setSessions(who)
	if !other {
		s.saw(who)
		p.reconnected()
	}
	s.health.Up()
	s.env.telemetry.servers(1)
	if since, say := s.connects.Say(s.env.now()); say {
		s.logger.Info("Connected to the server", append(who.fields(), zap.Int("times_since_last_line", since))...)
	}
	s.env.saidConnected(p.origin)
}

// saw is told who the server is, which is the same one as before.
func (s *server) saw(who identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.who.session = max(s.who.session, who.session)
}

// fields are what a server says of itself, for the log.
func (who identity) fields() []zap.Field {
	return []zap.Field{
		zap.String("protocol", string(who.protocol)), zap.Int64("pid", who.pid), zap.String("version", text(who.version)),
	}
}

// begin begins a life of the server, and ends the one before. The lock is held.
func (s *server) begin(who identity) {
	restarted := s.process != nil
	if restarted && s.untold {
		s.env.metrics.Ended(s.last())
	}
	s.who, s.sessions = who, sessionCount{}
	s.process = newProcess(s.env, newOrigin(s.env, s.config, who, s.env.now()), s.wants)
	s.process.memory, s.process.logger = s.memory, s.logger
	if !restarted {
		return
	}
	s.env.telemetry.restarted()
	if since, say := s.restarts.Say(s.env.now()); say {
		s.logger.Warn("The server was restarted", append(who.fields(), zap.Int("times_since_last_line", since))...)
	}
	s.env.saidRestarted(s.process.origin)
}

// restartPause is how long to wait before a process is asked that is found instead of the
// last one: a server may say at each question that it is another.
func (s *server) restartPause() time.Duration {
	if s.env.now().Sub(s.process.origin.begun) > s.env.config.Reconnect.MaxInterval {
		s.restarting.Reset()
	}
	return s.restarting.Pause()
}

// last is what the process was like when it was asked last.
func (s *server) last() processState {
	last := s.process.state()
	last.over = true
	return last
}

// disconnect is told that the server can't be asked any more. The process may come back.
func (s *server) disconnect(why error) {
	s.mu.Lock()
	s.connected = false
	of := s.process.origin
	s.mu.Unlock()
	s.env.telemetry.servers(-1)
	s.env.saidServerGone(of, s.connectedAt, why)
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

// controlTimeout bounds a command that ends by itself soon: the console connects for it, and
// says another before it.
func controlTimeout(config *Config) time.Duration { return config.Timeout + 2*config.AnswerTimeout }

// control asks a command that ends by itself soon.
func (a *attending) control(ctx context.Context, command greys.Command, each func(greys.Reply)) error {
	ctx, end := context.WithTimeoutCause(ctx, controlTimeout(a.server.env.config), errSlow)
	defer end()
	err := a.link.Run(ctx, command, each)
	if over := a.server.env.ctx; err != nil && over != nil && over.Err() != nil {
		return errFarewell // on a busy machine the connections are closed for it first
	}
	return because(ctx, err)
}

// because is the error of what was asked of a server, or why it was given no more time.
func because(ctx context.Context, err error) error {
	why := context.Cause(ctx)
	if err != nil && (errors.Is(why, errSlow) || errors.Is(why, errFarewell)) {
		return why
	}
	return err
}

var errSlow = errors.New("the server did not answer in time")
