// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// Guard stands between agents and collectors.
type Guard struct {
	environment

	// stop ends stopping, and cancel ctx.
	stop, cancel context.CancelFunc
	// slots are the places of connections that belong to no accepted agent.
	slots *slots.Slots

	mu     sync.Mutex
	agents map[*session]struct{}
	// runs has the session of each run ID, or nil. lastRun was assigned last.
	runs    [maxRunID + 1]*session
	lastRun int
}

// New returns a guard. The error names the option that is out of its bounds.
func New(o Options) (*Guard, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	g := &Guard{agents: map[*session]struct{}{}}
	e := &g.environment
	e.options, e.logger, e.timing, e.dial, e.lines = o, o.Logger, defaultTiming(), o.dialer(), newLines()
	if e.logger == nil {
		e.logger = zap.NewNop()
	}
	g.slots = slots.New(slots.Options{
		Max: o.MaxNewConnections, Setting: "--max-new-connections",
		Closed: func(slots.Reason) { g.counts.Evicted.Add(1) }, Logger: g.logger,
	})
	g.limit(o.totalMemory())
	g.stopping, g.stop = context.WithCancel(context.Background())
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g, nil
}

// acceptPause is how long to wait when a connection could not be accepted, as when the process has
// too many open files. A guard that ends still accepts connections until none has arrived for the
// time lastCall, or lastCalls have: a program would end if its waiting connection were closed.
const (
	acceptPause = 100 * time.Millisecond
	lastCall    = 100 * time.Millisecond
	lastCalls   = 1024
)

// Serve accepts agents that connect to a listener until Shutdown, and closes the listener. The error
// is the listener's.
func (g *Guard) Serve(listener net.Listener) error {
	defer listener.Close()
	defer context.AfterFunc(g.stopping, func() { endSoon(listener) })()
	accepting := g.slots.Listen(listener)
	if !g.begin() {
		return nil
	}
	defer g.serving.Done()
	for left := lastCalls; left > 0; {
		if g.stopping.Err() != nil {
			endSoon(listener)
			left--
		}
		conn, err := accepting.Accept()
		if err == nil {
			slot := g.admit(conn)
			g.serving.Add(1)
			go g.serve(conn, slot)
			continue
		}
		switch {
		case g.stopping.Err() != nil && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed)):
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		}
		g.warn(g.lines.accepting, g.logger, "Could not accept a connection", zap.Error(err))
		g.pause(g.ctx, acceptPause)
	}
	return nil
}

// begin makes Shutdown wait for Serve, and for the connections that it still accepts. It reports
// false if Shutdown was called before.
func (g *Guard) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping.Err() != nil {
		return false
	}
	g.serving.Add(1)
	return true
}

// endSoon ends a listener when no connection arrives for a moment.
func endSoon(listener net.Listener) {
	l, ok := listener.(interface{ SetDeadline(t time.Time) error })
	if !ok || l.SetDeadline(time.Now().Add(lastCall)) != nil {
		_ = listener.Close()
	}
}

// admit gives a new connection a slot. If all slots are used, a connection without a handshake is closed, unless it may
// still be an agent's: then the new one waits. It also waits if all others are refused connections, which are closed
// after some time. When the guard ends, each connection gets a slot.
func (g *Guard) admit(conn net.Conn) *slots.Slot {
	for {
		slot, full := g.slots.Admit(conn)
		if full == nil {
			return slot
		}
		grace := time.NewTimer(slots.Grace)
		select {
		case <-g.slots.Freed():
		case <-grace.C: // the oldest may lose its slot now
		case <-g.stopping.Done():
			grace.Stop()
			return g.slots.AdmitAlways(conn)
		}
		grace.Stop()
	}
}

// Shutdown disconnects from all agents in the order that lets their programs live, and passes the
// rest of their data on. It returns when all have closed their connections, and collectors have
// read all data. When the context is over, connections are cut; the error then reports agents
// whose programs can hang.
func (g *Guard) Shutdown(ctx context.Context) error {
	defer g.budget.Stop()
	g.mu.Lock()
	g.stop()
	g.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		g.serving.Wait()
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	g.cancel()
	<-over
	if n := g.cutOff.Load(); n > 0 {
		return fmt.Errorf("%d agents did not answer, and their connections were cut: %w", n, ctx.Err())
	}
	return nil
}

// serve reads the first message of a new connection, and is the connection's reader from then on. It
// releases the slot when the agent was accepted, and at the end.
func (g *Guard) serve(conn net.Conn, slot *slots.Slot) {
	defer g.serving.Done()
	defer slot.Release()
	defer conn.Close()
	in := newReader(conn, bytefrog.MaxMessageSize(bytefrog.MaxString))
	first, err := g.readFirst(in, slot)
	if err != nil && slot.Gone() {
		return // closed to make room, and counted
	}
	if err != nil {
		g.counts.Refused.Add(1)
		g.logger.Debug("Connection closed before the handshake", zap.Error(err))
		return
	}
	switch m := first.(type) {
	case bytefrog.Hello:
		g.serveControl(in, m, slot)
	case bytefrog.DataHello:
		g.serveData(in, m, slot)
	}
}

// readFirst reads the first message.
func (g *Guard) readFirst(in *connreader.Reader, slot *slots.Slot) (bytefrog.Message, error) {
	until := time.Now().Add(g.options.HandshakeTimeout)
	hurried := make(chan struct{})
	calm := context.AfterFunc(g.stopping, func() {
		in.EndBy(time.Now().Add(g.timing.hello))
		close(hurried)
	})
	defer func() {
		if !calm() {
			<-hurried
			in.EndBy(time.Time{})
		}
	}()
	m, _, err := in.Next(func(b []byte) (bytefrog.Message, int, error) {
		m, n, err := bytefrog.DecodeFirst(b, bytefrog.MaxString)
		if err == nil && n == 0 && len(b) > 0 {
			slot.Sent()
		}
		return m, n, err
	}, until)
	return m, err
}

// serveControl accepts an agent that has sent hello, and serves it to its end.
func (g *Guard) serveControl(in *connreader.Reader, m bytefrog.Hello, slot *slots.Slot) {
	if !slot.Establish() {
		return // it was closed to make room
	}
	s := newSession(&g.environment, m.Version, in)
	s.register = func(wanted uint8) uint8 { return g.assignRun(s, wanted) }
	if m.Version < bytefrog.MinVersion || m.Version > bytefrog.MaxVersion {
		g.refuse(in.Conn(), "this guard speaks protocol versions 1 and 2")
		return
	}
	if !g.enter(s) {
		s.turnAway("--max-agents of bytefrog-guard is reached")
		return
	}
	defer g.remove(s)
	defer s.end()
	s.account = g.memory.Open(budget.Settings{Shrink: func(int64) { s.wake() }})
	slot.Release()
	s.live()
}

// serveData accepts a data connection, and reads it to its end.
func (g *Guard) serveData(in *connreader.Reader, m bytefrog.DataHello, slot *slots.Slot) {
	s := g.lookup(m.Run)
	err := errUnknownRun
	if s != nil && socket.PeerHost(s.in.Conn()) != socket.PeerHost(in.Conn()) {
		// Run IDs are small numbers, and any peer that guesses one could end the run.
		s, err = nil, errOtherHost
	}
	if s != nil && !slot.Establish() {
		return // it was closed to make room
	}
	if s != nil {
		err = s.serve(in.Conn(), in.Bytes(), slot.Release)
	}
	if err != nil {
		g.warn(g.lines.refused, g.logger, "Data connection refused", zap.Uint8("run", m.Run), zap.Error(err), zap.Stringer("peer", in.Conn().RemoteAddr()))
		g.refuse(in.Conn(), err.Error())
	}
}

var (
	errUnknownRun = errors.New("the run is unknown")
	errOtherHost  = errors.New("expected data connections from the host of the control connection")
)

// refuse refuses a connection and sends the reason.
func (g *Guard) refuse(conn net.Conn, text string) {
	g.counts.Refused.Add(1)
	hq.Refuse(conn, text)
}

// enter accepts an agent, unless there are --max-agents. Silent agents without a collector do not count.
func (g *Guard) enter(s *session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, heard := time.Now(), 0
	for other := range g.agents {
		if !other.isForsaken(now) {
			heard++
		}
	}
	if heard >= g.options.MaxAgents || len(g.agents) >= maxRunID {
		return false
	}
	g.agents[s] = struct{}{}
	g.counts.Agents.Add(1)
	return true
}

// remove frees the place and the run ID of an agent.
func (g *Guard) remove(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.agents, s)
	if g.runs[s.run] == s {
		g.runs[s.run] = nil
	}
}

// assignRun assigns a run ID to a session: the wanted one if no other agent has it, otherwise the one that is free for
// the longest time.
func (g *Guard) assignRun(s *session, wanted uint8) uint8 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wanted != 0 && g.runs[wanted] == nil {
		g.runs[wanted] = s
		return wanted
	}
	// There are fewer agents than IDs.
	for g.runs[g.lastRun] != nil || g.lastRun == 0 {
		g.lastRun = (g.lastRun + 1) % len(g.runs)
	}
	g.runs[g.lastRun] = s
	return uint8(g.lastRun)
}

func (g *Guard) lookup(run uint8) *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs[run]
}

// sessions returns the sessions of all agents.
func (g *Guard) sessions() []*session {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*session
	for s := range g.agents {
		all = append(all, s)
	}
	return all
}

// Counts returns the guard's counts.
func (g *Guard) Counts() *Counts { return &g.counts }

// State returns the guard's state.
func (g *Guard) State() State {
	var state State
	for _, s := range g.sessions() {
		state.Agents++
		s.untraced.count()
		state.Names += s.names.size()
		if l := s.current(); l != nil {
			state.Connected++
			state.Waiting += int(l.waiting.Load())
			if l.held.Load() {
				state.Stalled++
			}
		}
	}
	return state
}
