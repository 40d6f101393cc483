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

// Protocol is what a server speaks.
type Protocol string

// The protocols. Both tells them apart by the first byte that a client says.
const (
	Both    Protocol = "both"
	GP      Protocol = "gp"
	Console Protocol = "console"
)

// Options say how a server behaves. A field that is 0 has its default.
type Options struct {
	Program ProgramOptions
	// Protocol is what is spoken; default Both.
	Protocol Protocol
	// ProcessID is the first process's; default our own. Each restart adds 1, unless SameID says
	// that it stays, as in a container.
	ProcessID int64
	SameID    bool
	// Version is the server's; default "1.7.6.6".
	Version string
	// ProtocolVersion is that of GP, the only one that is known; default 0x0001.
	ProtocolVersion uint16
	// Codes are GP's types for requests that have none in the document; default none.
	Codes gp.Codes
	// Style is how data of GP are written; default as the document's samples.
	Style gp.Style
	// Location is where the server is, whose local times it says; default UTC.
	Location *time.Location
	// Locale is the one of the console's process; default one with the digits of ASCII.
	Locale Locale
	// Speed is how many times as fast as time the cycles of monitors pass; default 1.
	Speed float64
	// ReplyDelay is how long a reply takes to come.
	ReplyDelay time.Duration
	// EndDelay is how long after the text of a reply the console says that it has ended;
	// default 200 ms, as the released server.
	EndDelay time.Duration
	// SessionTimeout is after how long of silence a connection is ended; default 5 min.
	SessionTimeout time.Duration
	// WriteTimeout is how long a client may take nothing; default 10 s.
	WriteTimeout time.Duration
	// Faults are what goes wrong, one after another, each after FaultEvery replies, those to
	// heartbeats included, and FaultTimes times in all; 0: without end.
	Faults                 []Fault
	FaultEvery, FaultTimes int
	// Heard, where it is not nil, is told of each command as it is asked, by many
	// goroutines.
	Heard func(command string)
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
	if o.Heard == nil {
		o.Heard = func(string) {}
	}
	return o
}

// Check says what of the options cannot be.
func (o Options) Check() error {
	switch o.Protocol {
	case "", Both, GP, Console:
	default:
		return fmt.Errorf("protocol %q: expected %s, %s or %s", o.Protocol, GP, Console, Both)
	}
	if !(o.Program.Failures >= 0 && o.Program.Failures <= 1) {
		return fmt.Errorf("failures: expected a part from 0 to 1, got %v", o.Program.Failures)
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

// Server is a server that is played.
type Server struct {
	options Options
	// replies counts those of which one may go wrong.
	replies atomic.Int64
	// restart has a token when the process is to end.
	restart chan struct{}

	mu sync.Mutex
	// past are the lives of the process that have ended; present is the one that has not, or
	// nil.
	past    []Truth
	present *life
}

// New makes a server. The error says which option cannot be.
func New(o Options) (*Server, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return &Server{options: o.withDefaults(), restart: make(chan struct{}, 1)}, nil
}

// Restart ends the process, with all its connections, and begins another one, of the next
// process ID or of the same, whose program begins anew.
func (s *Server) Restart() {
	select {
	case s.restart <- struct{}{}:
	default: // it is on its way
	}
}

// Lives are what happened in each life of the process until now, the last one last.
func (s *Server) Lives() (truths []Truth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	truths = slices.Clone(s.past)
	if s.present != nil {
		truths = append(truths, s.present.Truth())
	}
	return truths
}

// Serve serves until ctx ends, or the listener fails. It closes the listener, and no
// goroutine is left.
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

// accept gives connections until the listener or ctx ends.
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

// live is one life of the process.
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
			work.Go(func() { s.attend(l, conn) })
		}
	}
}

// begin begins a life.
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

// remember keeps what is of interest of a life that has ended.
func (s *Server) remember(l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = append(s.past, l.Truth())
	s.present = nil
}

// attend speaks with a client until either has enough.
func (s *Server) attend(l *life, conn net.Conn) {
	stop := context.AfterFunc(l.over, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	id := l.join(conn)
	defer l.leave(id)
	first, protocol := []byte(nil), s.options.Protocol
	if protocol == Both {
		var err error
		if first, protocol, err = s.listen(conn); err != nil {
			return
		}
	}
	if protocol == GP {
		s.attendGP(l, conn, first)
		return
	}
	s.attendConsole(l, conn, id, first)
}

// listen waits for the first byte, which says the protocol: the high one of a version of GP
// is 0.
func (s *Server) listen(conn net.Conn) (first []byte, p Protocol, err error) {
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

// join adds a connection to the sessions, and gives its ID.
func (l *life) join(conn net.Conn) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastSession++
	l.sessions[l.lastSession] = session{from: conn.RemoteAddr().String(), to: conn.LocalAddr().String()}
	return l.lastSession
}

// leave takes it out of them.
func (l *life) leave(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, id)
}
