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

// Options configure a Server. The zero value has the defaults.
type Options struct {
	// Minor is the minor version of the protocol to announce. The default is the newest.
	Minor uint32
	// Speed is a multiple of the recorded speed. 0 means that all data exists immediately.
	Speed float64
	// Restart restarts the sessions for every viewer. Otherwise they disappear at their end, which at speed 0 is when
	// a viewer has attached.
	Restart bool
	// Forever makes Serve continue after everything was read.
	Forever bool
	// Fault is a simulated fault.
	Fault Fault
	// Linger is the maximum time for which viewers may stay connected after everything was read, and may stay
	// disconnected after a fault. The default is 2 s.
	Linger time.Duration
	// Log logs events. Several goroutines call it. It may be nil.
	Log func(format string, args ...any)
}

const defaultLinger = 2 * time.Second

// Stats are the counters of a server.
type Stats struct {
	// Viewers is the number of connections. Broken is the number of connections that did not end by the viewer
	// closing them.
	Viewers, Broken int
	// Faults is the number of simulated faults.
	Faults int
	// Packets, Bytes and Events are the data sent to viewers. Data that was sent again counts again.
	Packets, Bytes, Events uint64

	connected int
}

// Server serves a source.
type Server struct {
	options Options
	relay   *lttnglive.Relay
	served  *served
}

// NewServer returns a server of a source, which must not change afterwards.
func NewServer(source *Source, o Options) (*Server, error) {
	if o.Linger <= 0 {
		o.Linger = defaultLinger
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	counts, recordings := newServed(source)
	options := lttnglive.RelayOptions{Minor: o.Minor, Restart: o.Restart}
	if o.Speed > 0 {
		begin := time.Now()
		options.Clock = func() time.Duration { return time.Duration(float64(time.Since(begin)) * o.Speed) }
	}
	relay, err := lttnglive.NewRelay(recordings, options)
	if err != nil {
		return nil, err
	}
	return &Server{options: o, relay: relay, served: counts}, nil
}

// Stats returns the current counters.
func (s *Server) Stats() Stats {
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	return s.served.stats
}

// Serve serves viewers until ctx ends. It also ends after every packet was read, when all viewers have disconnected
// or Options.Linger has passed, and when no viewer has reconnected for Options.Linger after a fault. Then it returns
// nil. An error is that of the listener. Serve always closes the listener, and all its goroutines have ended when it
// returns.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serving sync.WaitGroup
	serving.Go(func() {
		<-ctx.Done()
		// This only ends Accept.
		_ = listener.Close()
	})
	left := make(chan struct{}, 1) // a viewer has disconnected
	serving.Go(func() {
		defer cancel()
		s.waitForEnd(ctx, left)
	})
	err := s.accept(ctx, listener, &serving, left)
	cancel()
	serving.Wait()
	return err
}

// accept serves new viewers.
func (s *Server) accept(ctx context.Context, listener net.Listener, serving *sync.WaitGroup, left chan struct{}) error {
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				return conn.Close()
			}
			return nil // closed by Serve
		case err != nil:
			return err
		}
		s.served.change(func(stats *Stats) { stats.Viewers++ })
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
	s.served.change(func(stats *Stats) { stats.connected++ })
	wrapped := conn
	if s.options.Fault.Kind != NoFault {
		wrapped = &faultyConn{Conn: conn, server: s}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // also ends a fault
	err := s.relay.Serve(ctx, wrapped)
	if stop() {
		err = errors.Join(err, conn.Close())
	}
	s.served.change(func(stats *Stats) {
		stats.connected--
		if err != nil && ctx.Err() == nil {
			stats.Broken++
		}
	})
	switch {
	case err == nil || ctx.Err() != nil:
		s.options.Log("viewer %s disconnected", peer)
	default:
		s.options.Log("%v", err)
	}
}

// waitForEnd returns when everything was read and all viewers have disconnected or the linger time has passed, or
// when ctx ends.
func (s *Server) waitForEnd(ctx context.Context, left <-chan struct{}) {
	all := s.served.all
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

// waitForAll returns true when everything was read. It returns false when ctx ends, or when no viewer has reconnected
// for the linger time after a fault.
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

// takeFault reports whether another fault occurs, and counts it.
func (s *Server) takeFault() (taken bool) {
	s.served.change(func(stats *Stats) {
		if taken = stats.Faults < s.options.Fault.Times; taken {
			stats.Faults++
		}
	})
	return taken
}

// Address returns the address of a session for viewers on this machine: net://HOST:PORT/host/HOST/NAME.
func Address(listener net.Addr, session lttnglive.Session) string {
	endpoint := listener.String()
	if tcp, ok := listener.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		endpoint = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return fmt.Sprintf("net://%s/host/%s/%s", endpoint, session.Host, session.Name)
}
