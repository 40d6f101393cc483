// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// session is one agent, from its hello until it has closed its connections.
//
// Its goroutines: one reads the agent's control connection (agentcontrol.go), one each of
// its data connections (agentdata.go), and one keeps a link to a collector (keeper.go) and
// leaves the agent at the end (farewell.go).
type session struct {
	env     *environment
	run     uint8 // the ID in the agent's configuration
	version uint8
	logger  *zap.Logger
	// register assigns a run ID to the session: the wanted one, if it is free.
	register func(wanted uint8) uint8

	in      *connreader.Reader // of the control connection
	sending sync.Mutex
	agent   *hq.Agent
	names   *names
	bytefrog.Numbering
	untraced untraced
	// quiet: the agent has answered suspend, or traces no more.
	quiet atomic.Bool
	data  dataConnections

	// account has the data that waits for the collector, and the names, in the memory of all
	// agents; nil until the guard has accepted the agent.
	account *budget.Account

	// configuration is the agent's.
	configuration bytefrog.AgentConfiguration
	// startedAt is when the agent was sent start, before started is closed.
	startedAt time.Time
	started   chan struct{}

	// passing is held for reading while data of the agent is put into link, and for writing while
	// link changes. link is nil while there is no collector, and data is dropped.
	passing sync.RWMutex
	link    *link

	mu sync.Mutex
	// heartbeat is the agent's last one, and heard when its last message arrived. beaten is when the last message was
	// sent to the collector on the control connection.
	heartbeat     bytefrog.Heartbeat
	heard, beaten time.Time

	gone chan struct{} // closed when the control connection has ended
	over chan struct{} // closed when the session has ended, whether or not it was started
	// awake wakes the keeper.
	awake chan struct{}
}

func newSession(g *environment, version uint8, in *connreader.Reader) *session {
	s := &session{
		env: g, version: version, in: in,
		logger:  g.logger.With(zap.Stringer("agent", in.Conn().RemoteAddr())),
		data:    newDataConnections(),
		started: make(chan struct{}), gone: make(chan struct{}), over: make(chan struct{}),
		awake:     make(chan struct{}, 1),
		heard:     time.Now(),
		heartbeat: bytefrog.Heartbeat{Mode: bytefrog.ModeInitializing},
	}
	s.names = newNames(g.options.NamesMemory, s.elapsed, func() { g.counts.Forgotten.Add(1) })
	s.agent = hq.NewAgent(hq.Settings{Send: s.sendCommand, Changed: s.tracingChanged, Answer: g.timing.answer, Prepared: g.timing.prepared})
	s.untraced.total = &g.counts.Untraced
	return s
}

// wake wakes the keeper.
func (s *session) wake() {
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

// elapsed is the expected time of the agent's clock, in milliseconds.
func (s *session) elapsed() uint64 { return uint64(time.Since(s.startedAt).Milliseconds()) }

// send sends a message to the agent.
func (s *session) send(m bytefrog.Message) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return hq.Write(s.in.Conn(), m)
}

// sendCommand sends a command to the agent.
func (s *session) sendCommand(c hq.Command) error {
	s.logger.Debug("Sending a command to the agent", zap.Stringer("command", c.Of))
	if c.Of == bytefrog.TypeSuspend {
		s.env.counts.Suspensions.Add(1)
	}
	err := s.send(bytefrog.Command{Of: c.Of})
	if err != nil {
		s.logger.Debug("Could not send a command to the agent", zap.Error(err))
	}
	return err
}

// tracingChanged counts untraced time, notes whether the agent is quiet, and wakes the keeper.
func (s *session) tracingChanged(status hq.Status) {
	s.untraced.set(status.Reasons&(hq.Overload|hq.Absence) != 0 && status.State != hq.Ended)
	s.quiet.Store(status.State == hq.Suspended || status.State == hq.Ended)
	s.wake()
}

// end ends a session whose agent is gone or refused. No goroutine of it runs afterwards.
func (s *session) end() {
	s.agent.End()
	if s.account != nil {
		s.account.Close()
	}
	close(s.over)
}

// start sends start to the agent.
func (s *session) start() error {
	s.startedAt = time.Now()
	defer close(s.started)
	return s.send(bytefrog.Command{Of: bytefrog.TypeStart})
}

// configure sends the agent its configuration, which is the collector's, unless another agent has
// the run ID.
func (s *session) configure(l *link) error {
	s.configuration = l.configuration
	s.data.expect(int(l.configuration.DataConnections))
	message := l.message
	if s.run != l.configuration.RunID {
		s.configuration.RunID = s.run
		own, err := s.configuration.Message(s.version)
		if err != nil {
			return err
		}
		message = own
	}
	return s.send(message)
}

// setHeard notes that the agent has sent a message.
func (s *session) setHeard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
}

func (s *session) lastHeard() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// wasHeard reports whether the agent has sent a message since its start, or opened a data connection. It is true for an
// agent without heartbeats.
func (s *session) wasHeard() bool {
	return isClosed(s.data.joined) || s.configuration.HeartbeatInterval <= 0 || s.lastHeard().After(s.startedAt)
}

// forsakenBeats: after this many missing heartbeats an agent without a collector no longer counts for --max-agents.
const forsakenBeats = 30

// isForsaken reports whether an agent has no collector and sends nothing. Its connections stay open:
// its program may be stopped, and would hang without them.
func (s *session) isForsaken(now time.Time) bool {
	if !isClosed(s.started) || s.current() != nil {
		return false
	}
	interval := s.configuration.HeartbeatInterval
	return interval > 0 && now.Sub(s.lastHeard()) > forsakenBeats*interval
}

// current returns the link to the collector, or nil.
func (s *session) current() *link {
	s.passing.RLock()
	defer s.passing.RUnlock()
	return s.link
}

// install makes a link the current one.
func (s *session) install(l *link) {
	s.passing.Lock()
	defer s.passing.Unlock()
	s.link = l
}

// sendToCollector sends bytes to the collector on the control connection, and reports false when
// there is no collector.
func (s *session) sendToCollector(b []byte) bool {
	l := s.current()
	if l == nil || l.isLost() { // too much data may wait
		return false
	}
	l.control.send(b)
	s.mu.Lock()
	s.beaten = time.Now()
	s.mu.Unlock()
	s.bound(l)
	return true
}

// bound gives a link up if too much data waits for it. It wakes the keeper if all agents together hold too much.
func (s *session) bound(l *link) {
	if s.setHeld(l) > 0 {
		s.wake()
	}
	if most := s.env.options.Memory; l.waiting.Load() > int64(most) {
		l.lose(loss{lostMemory, errors.New("the collector reads nothing, and more data waits for it than --memory allows")})
	}
}

// setHeld reports the session's bytes to the memory of all agents: the data that waits in a link,
// which may be nil, and the names. It returns how many bytes the session has to free.
func (s *session) setHeld(l *link) (excess int64) {
	if s.account == nil {
		return 0
	}
	held := int64(s.names.size())
	if l != nil {
		held += l.waiting.Load()
	}
	return s.account.Set(held)
}

// free frees memory beyond the limit: it gives up the link with its waiting data, or names if they hold more.
func (s *session) free(l *link, excess int64) {
	if excess <= 0 {
		return
	}
	s.env.counts.GaveWay.Add(1)
	if l != nil && l.waiting.Load() > int64(s.names.size()) {
		l.lose(loss{lostTotal, fmt.Errorf("all agents together hold more than %d bytes (--total-memory), and this one holds most", s.env.budget.Limit())})
		return
	}
	forgotten := s.names.forget(excess)
	s.setHeld(l)
	s.env.warn(s.env.lines.forgotten, s.logger, "Names evicted: all agents together hold more than --total-memory, and this one holds most",
		zap.Int("names", forgotten), zap.Int64("total_memory", s.env.budget.Limit()))
}

// stall suspends the agent of a collector that reads nothing, or too slowly. Data that still arrives
// waits here. Until the agent has answered, it is read within the same bounds as before, because it still traces.
func (s *session) stall(l *link) {
	s.passing.RLock()
	defer s.passing.RUnlock()
	if s.link != l || l.isLost() || !l.held.CompareAndSwap(false, true) {
		return
	}
	l.riseAll()
	s.env.counts.Stalls.Add(1)
	s.agent.Suspend(hq.Overload)
	s.env.warn(s.env.lines.stalled, s.logger, "The collector reads too slowly: the agent is suspended until the collector has read all waiting data",
		zap.String("collector", l.address), zap.Duration("read_nothing_for", time.Since(l.lastProgress())), zap.Int64("waiting_bytes", l.waiting.Load()),
		zap.Int64("most_waiting_bytes", l.flood), zap.Duration("max_wait", s.env.options.MaxWait), zap.Duration("max_wait_per_second", s.env.options.MaxWaitPerSecond))
	s.wake()
}

// giveUpBadData sends both sides an error message: the agent has sent bad data.
func (s *session) giveUpBadData(connection string, err error) {
	s.agent.Release()
	s.env.counts.BadData.Add(1)
	s.env.warn(s.env.lines.badData, s.logger, "The agent sent bad data", zap.String("connection", connection), zap.Error(err))
	message := bytefrog.ErrorMessage{Text: "bytefrog-guard: bad data on a " + connection + " connection: " + err.Error()}
	s.sendToCollector(message.AppendTo(nil))
	_ = s.send(message) // an agent that is gone needs no reason
	s.in.EndBy(time.Now().Add(s.env.timing.linger))
}

// newLink returns a link to a collector of the list that is not connected yet. The context ends it
// until stayAfter.
func (s *session) newLink(ctx context.Context, index int) *link {
	g := s.env
	address := g.options.Collectors[index]
	l := &link{
		address: address, index: index, version: s.version, timeout: g.options.ConnectTimeout,
		dial: func(ctx context.Context) (net.Conn, error) { return g.dial(ctx, address) },
		flow: flow{
			chunks: &g.chunks, queue: int64(g.options.Queue), flood: int64(g.options.Memory / 4),
			quiet: &s.quiet, wakeUp: s.wake, made: time.Now(),
		},
		lost: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(g.ctx)
	l.untie = context.AfterFunc(ctx, l.cancel)
	return l
}
