// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// Session is the session with one agent: a run, from its hello until its last data is delivered.
// The methods can be called from many goroutines.
type Session struct {
	run  *run
	over chan struct{}
}

// New returns the session of an agent that has sent hello on its control connection. Serve must
// follow.
func New(env *Environment, options Options) *Session {
	return &Session{run: newRun(env, options), over: make(chan struct{})}
}

// Serve starts the agent, and reads its control connection to the end. The rest of the session runs
// in goroutines of Environment.Receiver. An agent whose run ends before its start is not started. Then
// Serve returns the ending, and the caller refuses the agent; nil: the agent has disconnected.
func (s *Session) Serve() (notStarted error) {
	r := s.run
	r.env.Receiver.Go(s.live)
	gone := s.start()
	if r.life.isStarted() {
		disconnected := r.Started()
		defer disconnected()
		(&controlReader{run: r}).read()
		return nil
	}
	close(r.control.ended)
	if gone {
		_ = r.control.in.Conn().Close()
		return nil
	}
	return r.life.ending
}

// live runs the session until its end.
func (s *Session) live() {
	defer close(s.over)
	live(s.run)
}

// start configures and starts the agent, unless its run ends. It reports whether the agent has closed
// its connection.
func (s *Session) start() (gone bool) {
	r := s.run
	err := r.life.start(s.sendStart)
	if err == nil && r.life.isStarted() {
		r.logger.Info("An agent was started", zap.Uint8("protocol", r.Version), zap.Stringer("stream", r.Stream))
		r.Records.Started(r.Version, r.control.in.Conn().RemoteAddr())
	}
	var failed *net.OpError
	gone = errors.As(err, &failed) && !errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case gone:
		r.life.leave(goneBeforeStart(err))
	case err != nil:
		r.life.leave(startFailed(err))
	}
	return gone
}

// sendStart sends the configuration and start.
func (s *Session) sendStart() error {
	r := s.run
	agent := r.env.Settings.Agent
	agent.RunID = r.ID
	configuration, err := agent.Message(r.Version)
	if err != nil {
		return err
	}
	if err := r.control.send(configuration); err != nil {
		return err
	}
	r.stream.StartClock(r.env.Receiver.Now())
	return r.control.send(bytefrog.Command{Of: bytefrog.TypeStart})
}

// OtherHostError reports a data connection from another host than that of the run's control
// connection. IDs of runs are small numbers: a stranger that guesses one could end the run.
type OtherHostError struct {
	Run       uint8
	Host, Got string
}

func (e *OtherHostError) Error() string {
	return fmt.Sprintf("expected data connections of run %d from %s, as its control connection, got one from %s", e.Run, e.Host, e.Got)
}

// errSlotLost reports a data connection that was closed to make room before it joined.
var errSlotLost = errors.New("the connection was closed to make room for others")

// dataBytes is the size of the buffer of a data connection.
const dataBytes = 64 << 10

// Join adds a data connection to the run, and reads it to its end. establish reports whether the
// connection still has its slot. The error says why the connection could not join: ErrRunOver,
// *TooManyConnections, *OtherHostError, or another one.
func (s *Session) Join(in *connreader.Reader, establish func() bool) error {
	r := s.run
	select {
	case <-r.life.started:
	case <-r.life.leaving:
		if !r.life.isStarted() {
			return ErrRunOver
		}
	}
	if host, theirs := socket.PeerHost(r.control.in.Conn()), socket.PeerHost(in.Conn()); host != theirs {
		return &OtherHostError{Run: r.ID, Host: host, Got: theirs}
	}
	if err := r.data.attach(in); err != nil {
		return err
	}
	if !establish() {
		r.data.detach(in)
		return errSlotLost
	}
	d := &dataConnection{run: r, in: in}
	if err := d.prepare(); err != nil {
		r.data.detach(in)
		return err
	}
	r.agent.Joined()
	in.Resize(dataBytes)
	if err := hq.Write(in.Conn(), bytefrog.DataHelloReply{}); err != nil {
		d.lost = err
	}
	d.serve()
	return nil
}

// Leave ends the run. Only the first ending counts.
func (s *Session) Leave(e Ending) { s.run.life.leave(e) }

// Over is closed when the session has ended.
func (s *Session) Over() <-chan struct{} { return s.over }

// State returns the state of the session.
func (s *Session) State() State { return s.run.state() }

// Memory returns the memory of Options.
func (s *Session) Memory() *runmemory.Memory { return s.run.Memory }

// Do carries out a command of an operator, and returns its result as a text.
func (s *Session) Do(ctx context.Context, command string) (message string, err error) {
	return (&commands{run: s.run}).do(ctx, command)
}
