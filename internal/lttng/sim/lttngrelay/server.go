// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Options are how a Server serves. The zero value is the defaults.
type Options struct {
	// Minor is the minor version of the protocol to announce; default the newest.
	Minor uint32
	// Speed is how many times as fast as recorded; 0: all is there at once.
	Speed float64
	// Again has the sessions begin anew for every viewer. Otherwise they are gone after
	// their end, which at full speed has come when a viewer is attached.
	Restart bool
	// Forever has Serve go on when everything was read.
	Forever bool
	// Fault is what goes wrong.
	Fault Fault
	// Linger is how long viewers may stay when everything was read, and may stay away
	// after a fault; default 2 s.
	Linger time.Duration
	// Log is called with what happens, by several goroutines; nil: not.
	Log func(format string, args ...any)
}

const defaultLinger = 2 * time.Second

// Stats are figures of what was served.
type Stats struct {
	// Viewers is how many connected. Broken is how many connections ended in any other
	// way than by the viewer's closing it.
	Viewers, Broken int
	// Faults is how often something went wrong on purpose.
	Faults int
	// Packets, Bytes and Events are what viewers were given; what was given again
	// counts again.
	Packets, Bytes, Events uint64

	connected int
}

// Server serves a source.
type Server struct {
	options Options
	relay   *lttnglive.Relay
	given   *given
}

// NewServer makes a server of a source, which must not change from now on.
func NewServer(source *Source, o Options) (*Server, error) {
	if o.Linger <= 0 {
		o.Linger = defaultLinger
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	counts, recordings := newGiven(source)
	options := lttnglive.RelayOptions{Minor: o.Minor, Restart: o.Restart}
	if o.Speed > 0 {
		begin := time.Now()
		options.Clock = func() time.Duration { return time.Duration(float64(time.Since(begin)) * o.Speed) }
	}
	relay, err := lttnglive.NewRelay(recordings, options)
	if err != nil {
		return nil, err
	}
	return &Server{options: o, relay: relay, given: counts}, nil
}

// Stats returns the figures so far.
func (s *Server) Stats() Stats {
	s.given.mu.Lock()
	defer s.given.mu.Unlock()
	return s.given.stats
}

// Serve serves viewers until ctx ends, or until every packet was read and the viewers
// are gone, or stay for longer than Options.Linger, or until none has come again for
// that long after a fault. All is nil; an error is that of the listener, which is closed
// in any case. Nothing of it is left when it returns.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serving sync.WaitGroup
	serving.Go(func() {
		<-ctx.Done()
		// It only ends Accept.
		_ = listener.Close()
	})
	left := make(chan struct{}, 1) // a viewer has
	serving.Go(func() {
		defer cancel()
		s.waitForEnd(ctx, left)
	})
	err := s.accept(ctx, listener, &serving, left)
	cancel()
	serving.Wait()
	return err
}

// accept serves the viewers that come.
func (s *Server) accept(ctx context.Context, listener net.Listener, serving *sync.WaitGroup, left chan struct{}) error {
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				return conn.Close()
			}
			return nil // closed because of the end
		case err != nil:
			return err
		}
		s.given.change(func(stats *Stats) { stats.Viewers++ })
		serving.Go(func() {
			s.serve(ctx, conn)
			select {
			case left <- struct{}{}:
			default:
			}
		})
	}
}

// serve serves one viewer.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	peer := conn.RemoteAddr()
	s.options.Log("viewer %s connected", peer)
	s.given.change(func(stats *Stats) { stats.connected++ })
	wrapped := conn
	if s.options.Fault.Kind != NoFault {
		wrapped = &faultyConn{Conn: conn, server: s}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends a fault, too
	err := s.relay.Serve(ctx, wrapped)
	if stop() {
		err = errors.Join(err, conn.Close())
	}
	s.given.change(func(stats *Stats) {
		stats.connected--
		if err != nil && ctx.Err() == nil {
			stats.Broken++
		}
	})
	switch {
	case err == nil || ctx.Err() != nil:
		s.options.Log("viewer %s left", peer)
	default:
		s.options.Log("%v", err)
	}
}

// waitForEnd returns when everything was read and no viewer is there, or stays too long,
// or ctx ends.
func (s *Server) waitForEnd(ctx context.Context, left <-chan struct{}) {
	all := s.given.all
	if s.options.Forever {
		all = nil // never
	}
	if !s.waitForAll(ctx, all, left) {
		return
	}
	linger := time.NewTimer(s.options.Linger)
	defer linger.Stop()
	for s.Stats().connected > 0 {
		select {
		case <-ctx.Done():
			return
		case <-linger.C:
			return
		case <-left:
		}
	}
}

// waitForAll reports true when everything was read. It reports false when ctx ends, or
// when after a fault no viewer has come again for so long as viewers may linger: then
// nobody reads the rest.
func (s *Server) waitForAll(ctx context.Context, all, left <-chan struct{}) bool {
	var alone <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-all:
			return true
		case <-left:
			if s.options.Fault.Kind != NoFault && !s.options.Forever {
				alone = time.After(s.options.Linger)
			}
		case <-alone:
			if stats := s.Stats(); stats.connected == 0 && stats.Faults > 0 {
				return false
			}
		}
	}
}

// takeFault says whether something is to go wrong once more.
func (s *Server) takeFault() (taken bool) {
	s.given.change(func(stats *Stats) {
		if taken = stats.Faults < s.options.Fault.Times; taken {
			stats.Faults++
		}
	})
	return taken
}

// Address is what viewers on this machine are given to find a session:
// net://HOST:PORT/host/HOST/NAME.
func Address(listener net.Addr, session lttnglive.Session) string {
	endpoint := listener.String()
	if tcp, ok := listener.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		endpoint = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return fmt.Sprintf("net://%s/host/%s/%s", endpoint, session.Host, session.Name)
}
