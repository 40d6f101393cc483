// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"fmt"
	"os"
	"testing"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp/zmqtest"
	"github.com/callbraid/callbraid/internal/testkit"
)

// Options are what a server is like.
type Options struct {
	// Publish and Request are the addresses on which it publishes and answers; Request
	// empty: it only publishes.
	Publish, Request string
	// Hello is what it says of itself; the process, its name and its directory are the real ones.
	Hello rbkit.HandshakeReply
	// Mute says that it takes requests and answers none.
	Mute bool
	// QueueMessages is how many messages its socket keeps for a slow reader; 0: 1000, as
	// with real servers.
	QueueMessages int
}

// Server is one life of a server.
type Server struct {
	publisher, replier *zmqtest.Peer
	state              *rbkitserver.Server
	dialect            rbkit.Dialect
}

// Start starts a server, which ends with the test, or with Stop. Where libzmq is missing,
// the test is skipped as zmqtest.Require says.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	var options []string
	if o.QueueMessages > 0 {
		options = append(options, fmt.Sprintf("hwm=%d", o.QueueMessages))
	}
	s := &Server{dialect: o.Hello.Dialect}
	if o.Request != "" {
		s.answer(t, o) // before somebody hears of it, who may ask at once
	}
	s.publisher = zmqtest.Bind(t, "PUB", o.Publish, options...)
	return s
}

// answer starts the half of the server that answers.
func (s *Server) answer(t testing.TB, o Options) {
	t.Helper()
	s.replier = zmqtest.Bind(t, "REP", o.Request, "show=yes")
	o.Hello.PID, o.Hello.ProcessName = uint64(s.PID()), s.replier.Name()
	var err error
	if o.Hello.WorkingDirectory, err = os.Getwd(); err != nil {
		t.Fatal(err)
	}
	s.state = rbkitserver.New(rbkitserver.Options{Hello: o.Hello, Mute: o.Mute})
	s.replier.Answer(func(request [][]byte) [][]byte { return s.state.Answer(request) })
}

// PID is that of the process that answers. A server that only publishes says none, nor
// has it a State or Commands.
func (s *Server) PID() int { return s.replier.PID() }

// Publish publishes a message. Only who has subscribed gets it.
func (s *Server) Publish(message []byte) { s.publisher.Send(message) }

// AwaitSubscriber publishes messages without events until one is heard: a PUB socket
// doesn't tell that somebody has subscribed, and what comes after a message that was
// heard arrives.
func (s *Server) AwaitSubscriber(t testing.TB, heard func() bool) {
	t.Helper()
	testkit.Eventually(t, "the receiver gets the messages of the server", func() (bool, string) {
		s.Publish(noEvents(s.dialect))
		return heard(), "nothing"
	})
}

// noEvents is a message without events and without a number.
func noEvents(d rbkit.Dialect) []byte {
	const released, documented = 7, 6
	eventType := byte(released)
	if d == rbkit.Documented {
		eventType = documented
	}
	return []byte{0x83, 0, eventType, 1, 0xcb, 0x42, 0x79, 0, 0, 0, 0, 0, 0, 2, 0x90}
}

// State is what the server would say of itself.
func (s *Server) State() rbkit.HandshakeReply { return s.state.State() }

// Commands are those that came, in their order, handshakes among them.
func (s *Server) Commands() []rbkit.Command { return s.state.Commands() }

// Stop ends the server in order: what it has published still leaves it.
func (s *Server) Stop() {
	s.publisher.Stop()
	if s.replier != nil {
		s.replier.Stop()
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	s.publisher.Kill()
	if s.replier != nil {
		s.replier.Kill()
	}
}
