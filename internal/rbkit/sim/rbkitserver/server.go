// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitserver

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// Options are the options of a server. The zero value is a released server without profiles.
type Options struct {
	// Hello is its reply to a handshake. The server sets Time. Dialect is Released if it is not
	// set.
	Hello rbkit.HandshakeReply
	// Publisher and Replier are the options of its sockets.
	Publisher zmtp.PublisherOptions
	Replier   zmtp.ServerOptions
	// Mute: it answers no request, like an old server on a new Ruby. Deaf: it acknowledges
	// commands without carrying them out.
	Mute, Deaf bool
	// Fatal are commands that end it after its answer, as the released gem crashes a program on
	// Ruby 3.1.
	Fatal []rbkit.Command
	// Commanded, unless nil, is called for each command, before the answer.
	Commanded func(rbkit.Command)
}

// Server is a server. Several goroutines can call its methods.
type Server struct {
	options   Options
	publisher *zmtp.Publisher
	// crashed is closed when a command has ended it.
	crashed chan struct{}
	crash   func()

	mu       sync.Mutex
	hello    rbkit.HandshakeReply
	commands []rbkit.Command
	counter  uint64
}

// New returns a server without listeners.
func New(options Options) *Server {
	if options.Hello.Dialect == 0 {
		options.Hello.Dialect = rbkit.Released
	}
	if options.Commanded == nil {
		options.Commanded = func(rbkit.Command) {}
	}
	s := &Server{options: options, publisher: zmtp.NewPublisher(options.Publisher), hello: options.Hello, crashed: make(chan struct{})}
	s.crash = sync.OnceFunc(func() { close(s.crashed) })
	return s
}

// Serve serves clients of the two listeners until ctx ends, or until a command has ended the
// server; request may be nil. It closes both, and ends all its goroutines.
func (s *Server) Serve(ctx context.Context, publish, request net.Listener) error {
	if request == nil {
		return s.publisher.Serve(ctx, publish)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-ctx.Done():
		case <-s.crashed:
			end()
		}
	}()
	answered := make(chan error, 1)
	go func() {
		defer end()
		answered <- zmtp.NewReplier(s.options.Replier, s.Answer).Serve(ctx, request)
	}()
	err := s.publisher.Serve(ctx, publish)
	end()
	return errors.Join(err, <-answered)
}

// Publish sends a message to all subscribers.
func (s *Server) Publish(message []byte) { s.publisher.Send(message) }

// PublishEvents sends a message of events with the server's next number, at a time, and returns
// its size in bytes.
func (s *Server) PublishEvents(at time.Time, events *rbkit.Collection) (bytes int) {
	s.mu.Lock()
	counter := s.counter
	s.counter++
	s.mu.Unlock()
	message := events.AppendTo(nil, rbkit.Time(at.UnixMilli()), counter)
	s.Publish(message)
	return len(message)
}

// Subscribers returns the number of clients that have subscribed, each once.
func (s *Server) Subscribers() int { return s.publisher.Subscriptions() }

// Dropped returns the number of messages that slow subscribers did not get.
func (s *Server) Dropped() uint64 { return s.publisher.Dropped() }

// Drain waits until all published messages are sent, or until ctx ends.
func (s *Server) Drain(ctx context.Context) error { return s.publisher.Drain(ctx) }

// Crashed reports whether a command has ended the server.
func (s *Server) Crashed() bool {
	select {
	case <-s.crashed:
		return true
	default:
		return false
	}
}

// State returns the server's reply to a handshake.
func (s *Server) State() rbkit.HandshakeReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello
}

// Commands returns the received commands in their order, with handshakes.
func (s *Server) Commands() []rbkit.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]rbkit.Command(nil), s.commands...)
}

// maxCommands bounds the stored commands.
const maxCommands = 10_000

// Answer returns the answer to a request; nil: none. Serve calls it.
func (s *Server) Answer(request zmtp.Message) [][]byte {
	command := rbkit.Command(request[0])
	s.options.Commanded(command)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.commands) < maxCommands {
		s.commands = append(s.commands, command)
	}
	if s.options.Mute {
		return nil
	}
	if command == rbkit.Handshake {
		s.hello.Time = rbkit.Time(time.Now().UnixMilli())
		return [][]byte{rbkit.AppendHandshake(nil, s.hello)}
	}
	if slices.Contains(s.options.Fatal, command) {
		s.crash()
	}
	if !s.options.Deaf {
		s.obey(command)
	}
	return [][]byte{rbkit.OK()}
}

// obey executes a command, as far as the state shows it. The lock is held.
func (s *Server) obey(command rbkit.Command) {
	switch command {
	case rbkit.StartMemoryProfile:
		s.hello.ObjectTraceEnabled = true
	case rbkit.StopMemoryProfile:
		s.hello.ObjectTraceEnabled = false
	case rbkit.UseWallTime:
		s.hello.Clock = "wall"
	case rbkit.UseCPUTime:
		s.hello.Clock = "cpu"
	case rbkit.StartCPUProfiling:
		s.hello.CPUProfiling = true
	case rbkit.StopCPUProfiling:
		s.hello.CPUProfiling = false
	}
}
