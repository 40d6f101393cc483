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

// Options describe a server.
type Options struct {
	// Publish and Request are the addresses on which it publishes and answers; Request
	// empty: it only publishes.
	Publish, Request string
	// Hello is its reply to a handshake, except for the process, its name and its directory, which
	// are the real ones.
	Hello rbkit.HandshakeReply
	// Mute: it receives requests and answers none.
	Mute bool
	// QueueMessages is the number of messages in its socket's queue for a slow reader; 0: 1000, as
	// in real servers.
	QueueMessages int
}

// Server is one life of a server.
type Server struct {
	publisher, replier *zmqtest.Peer
	state              *rbkitserver.Server
	dialect            rbkit.Dialect
}

// Start starts a server, which ends with the test, or with Stop. If libzmq is missing, the test is
// skipped like by zmqtest.Require.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	var options []string
	if o.QueueMessages > 0 {
		options = append(options, fmt.Sprintf("hwm=%d", o.QueueMessages))
	}
	s := &Server{dialect: o.Hello.Dialect}
	if o.Request != "" {
		s.answer(t, o) // before the start of clients, which may ask immediately
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

// PID is that of the process that answers. A server that only publishes has none, and no State or
// Commands.
func (s *Server) PID() int { return s.replier.PID() }

// Publish publishes a message. Only subscribers get it.
func (s *Server) Publish(message []byte) { s.publisher.Send(message) }

// AwaitSubscriber publishes messages without events until one arrives: a PUB socket doesn't report
// subscribers, and messages after one that arrived arrive too.
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

// State is the server's own state.
func (s *Server) State() rbkit.HandshakeReply { return s.state.State() }

// Commands are the received ones, in their order, with handshakes.
func (s *Server) Commands() []rbkit.Command { return s.state.Commands() }

// Stop ends the server in order: it still sends all published messages.
func (s *Server) Stop() {
	s.publisher.Stop()
	if s.replier != nil {
		s.replier.Stop()
	}
}

// Kill ends the server immediately.
func (s *Server) Kill() {
	s.publisher.Kill()
	if s.replier != nil {
		s.replier.Kill()
	}
}
