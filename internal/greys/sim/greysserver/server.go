// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/greys/gp"
)

// Protocol is the protocol of a server.
type Protocol string

// The protocols. Both decides by the client's first byte.
const (
	Both    Protocol = "both"
	GP      Protocol = "gp"
	Console Protocol = "console"
)

// Options configure a server. A field that is 0 has its default.
type Options struct {
	Program ProgramOptions
	// Protocol is the protocol; default Both.
	Protocol Protocol
	// ProcessID is the ID of the first process; default the simulator's own. Each restart adds 1. With SameID it stays
	// the same, as in a container.
	ProcessID int64
	SameID    bool
	// Version is the version of the server; default "1.7.6.6".
	Version string
	// ProtocolVersion is the only supported version of GP; default 0x0001.
	ProtocolVersion uint16
	// Codes are GP's types for requests without a documented one; default none.
	Codes gp.Codes
	// Style is the style of GP data; default as in the document's samples.
	Style gp.Style
	// Location is the time zone in which the server writes local times; default UTC.
	Location *time.Location
	// Locale is the locale of the console's process; default one with ASCII digits.
	Locale Locale
	// Speed is the factor by which monitor cycles are shorter than requested; default 1.
	Speed float64
	// ReplyDelay is the delay before each reply.
	ReplyDelay time.Duration
	// EndDelay is the delay between the text of a reply and its end in the console; default 200 ms, as in the released
	// server.
	EndDelay time.Duration
	// SessionTimeout is the idle time after which a connection ends; default 5 min.
	SessionTimeout time.Duration
	// WriteTimeout is the time that a client may not read; default 10 s.
	WriteTimeout time.Duration
	// Faults are used one after another, each after FaultEvery replies, including replies to heartbeats. FaultTimes
	// limits their number; 0 means without end.
	Faults                 []Fault
	FaultEvery, FaultTimes int
	// OnCommand is called for each received command, from many goroutines; nil means no call.
	OnCommand func(command string)
}

func (o Options) withDefaults() Options {
	o.Program = o.Program.withDefaults()
	if o.Protocol == "" {
		o.Protocol = Both
	}
	if o.ProcessID == 0 {
		o.ProcessID = int64(os.Getpid())
	}
	if o.Version == "" {
		o.Version = "1.7.6.6"
	}
	if o.ProtocolVersion == 0 {
		o.ProtocolVersion = gp.DefaultVersion
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	or(&o.Speed, 1)
	or(&o.EndDelay, 200*time.Millisecond)
	or(&o.SessionTimeout, 5*time.Minute)
	or(&o.WriteTimeout, 10*time.Second)
	if o.OnCommand == nil {
		o.OnCommand = func(string) {}
	}
	return o
}

// Check returns an error for an invalid option.
func (o Options) Check() error {
	switch o.Protocol {
	case "", Both, GP, Console:
	default:
		return fmt.Errorf("protocol %q: expected %s, %s or %s", o.Protocol, GP, Console, Both)
	}
	if !(o.Program.Failures >= 0 && o.Program.Failures <= 1) {
		return fmt.Errorf("failures: expected a fraction from 0 to 1, got %v", o.Program.Failures)
	}
	if _, known := locales[o.Locale]; o.Locale != "" && !known {
		return fmt.Errorf("locale %q: expected one of %q", o.Locale, slices.Sorted(maps.Keys(locales)))
	}
	for _, f := range o.Faults {
		if err := f.check(); err != nil {
			return err
		}
	}
	return o.Codes.Check()
}

// Server is a simulated server.
type Server struct {
	options Options
	// replies counts the replies that may have a fault.
	replies atomic.Int64
	// restart has a token when the process has to end.
	restart chan struct{}

	mu sync.Mutex
	// past are the ended lives of the process; present is the current one, or nil.
	past    []Truth
	present *life
}

// New returns a server, or an error for an invalid option.
func New(o Options) (*Server, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return &Server{options: o.withDefaults(), restart: make(chan struct{}, 1)}, nil
}

// Restart ends the process with all its connections and starts another one, with the next process ID or with the same.
// The new program begins from the start.
func (s *Server) Restart() {
	select {
	case s.restart <- struct{}{}:
	default: // a restart is already due
	}
}

// Lives returns the truths of all lives of the process, the newest last.
func (s *Server) Lives() (truths []Truth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	truths = slices.Clone(s.past)
	if s.present != nil {
		truths = append(truths, s.present.Truth())
	}
	return truths
}

// Serve serves until ctx ends or the listener fails. It closes the listener and waits for all its goroutines.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	stop := context.AfterFunc(serving, func() { _ = listener.Close() })
	defer stop()
	accepted := make(chan net.Conn)
	failed := make(chan error, 1)
	go func() {
		defer end()
		failed <- accept(serving, listener, accepted)
	}()
	for serving.Err() == nil {
		s.live(serving, accepted)
	}
	err := <-failed
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// accept sends connections to a channel until the listener or ctx ends.
func accept(ctx context.Context, listener net.Listener, to chan<- net.Conn) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		select {
		case to <- conn:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), conn.Close())
		}
	}
}

// live runs one life of the process.
func (s *Server) live(ctx context.Context, accepted <-chan net.Conn) {
	over, end := context.WithCancel(ctx)
	l := s.begin(over)
	defer s.remember(l)
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	work.Go(l.run)
	for {
		select {
		case <-over.Done():
			return
		case <-s.restart:
			return
		case conn := <-accepted:
			work.Go(func() { s.serve(l, conn) })
		}
	}
}

// begin starts a life.
func (s *Server) begin(over context.Context) *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.options.ProcessID
	if !s.options.SameID {
		id += int64(len(s.past))
	}
	s.present = newLife(over, s.options.Program, id)
	return s.present
}

// remember stores the truth of an ended life.
func (s *Server) remember(l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = append(s.past, l.Truth())
	s.present = nil
}

// serve serves one connection until it ends.
func (s *Server) serve(l *life, conn net.Conn) {
	stop := context.AfterFunc(l.over, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	id := l.join(conn)
	defer l.leave(id)
	first, protocol := []byte(nil), s.options.Protocol
	if protocol == Both {
		var err error
		if first, protocol, err = s.detect(conn); err != nil {
			return
		}
	}
	if protocol == GP {
		s.serveGP(l, conn, first)
		return
	}
	s.serveConsole(l, conn, id, first)
}

// detect waits for the first byte, which shows the protocol: the high byte of a GP version is 0.
func (s *Server) detect(conn net.Conn) (first []byte, p Protocol, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(s.options.SessionTimeout)); err != nil {
		return nil, "", err
	}
	first = make([]byte, 1)
	if _, err := conn.Read(first); err != nil {
		return nil, "", err
	}
	if first[0] == 0 {
		return first, GP, nil
	}
	return first, Console, nil
}

// join adds a connection to the sessions and returns its ID.
func (l *life) join(conn net.Conn) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastSession++
	l.sessions[l.lastSession] = session{from: conn.RemoteAddr().String(), to: conn.LocalAddr().String()}
	return l.lastSession
}

// leave removes a connection from the sessions.
func (l *life) leave(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, id)
}
