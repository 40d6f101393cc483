// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// asker asks a server, whichever protocol it speaks: it calls each for every answer, in
// order, and returns when the command has ended, or was ended by ctx. It is for many
// goroutines.
type asker interface {
	Run(ctx context.Context, command greys.Command, each func(greys.Reply)) error
}

// link is how a server that speaks a known protocol is asked, until it is lost.
type link struct {
	asker
	protocol Protocol
	// lost is closed when nothing can be asked any more, and why says why; nil: each command
	// has a connection of its own.
	lost <-chan struct{}
	why  func() error
	// close ends what the link holds, and waits for that.
	close func()
	// stats are what was counted of answers until now.
	stats func() linkStats
	// unsent reports whether an error says that a command has not come to the server.
	unsent func(error) bool
	// resetsAll says that a reset is for all classes, whatever pattern it names.
	resetsAll bool
	// ends says that the server is told when a command is no longer wanted.
	ends bool
}

// isLost reports whether nothing can be asked any more.
func (l *link) isLost() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// linkStats are counts of a link.
type linkStats struct {
	// bad are answers that were not understood, and lastBad is why the last of them was not
	// where nothing else says it; missing are gaps in their numbers.
	bad, missing uint64
	lastBad      error
	// repeated, unasked and late are answers that were left out: told again by the server, to
	// what was not asked, and to what nobody waits for any more.
	repeated, unasked, late uint64
	// lost are commands that the server ended for no reason, unanswered those that were
	// aborted, of which it did not say in time that they ended.
	lost, unanswered uint64
}

// since is what was counted after before was.
func (s linkStats) since(before linkStats) linkStats {
	return linkStats{
		bad: s.bad - before.bad, missing: s.missing - before.missing, lastBad: s.lastBad,
		repeated: s.repeated - before.repeated, unasked: s.unasked - before.unasked, late: s.late - before.late,
		lost: s.lost - before.lost, unanswered: s.unanswered - before.unanswered,
	}
}

// connect makes a link to a server.
func connect(ctx context.Context, s *server, spoke Protocol) (*link, error) {
	protocol := s.env.config.Protocol
	if protocol == ProtocolConsole || protocol == ProtocolAuto && spoke == ProtocolConsole {
		return s.console(), nil
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	probed, err := gp.Probe(ctx, conn, s.gpConfig())
	speaks := probed.Speaks
	if err == nil && speaks == gp.SpeaksGP {
		return s.gp(conn, probed.Client(conn, s.gpConfig())), nil
	}
	remote := conn.RemoteAddr()
	_ = conn.Close() // nothing is under way
	switch {
	case err != nil:
		return nil, fmt.Errorf("%v: asking for the version by GP: %w", remote, err)
	case protocol == ProtocolAuto && (speaks == gp.SpeaksConsole || speaks == gp.SpeaksNothing):
		return s.console(), nil
	case speaks == gp.SpeaksNothing:
		return nil, fmt.Errorf("%v: %w: no answer to GP's request for the version within gp.probe_timeout (%v), nor to a line end", remote, errSilent, s.env.config.GP.ProbeTimeout)
	case speaks == gp.SpeaksConsole:
		return nil, fmt.Errorf("%v: %w: set protocol to %s or %s", remote, gp.ErrConsole, ProtocolConsole, ProtocolAuto)
	default:
		return nil, fmt.Errorf("%v: %w", remote, errNeither)
	}
}

// errSilent is of a server that accepts connections, and answers nothing.
var errSilent = errors.New("the server accepts connections and answers nothing: the process hangs, or listens for something else")

var errNeither = errors.New("what answers speaks neither GP nor the Greys text console")

// dial makes a connection, which is closed when the time for servers is over at a shutdown:
// nothing that waits for one then waits any longer.
func (s *server) dial(ctx context.Context) (net.Conn, error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(s.env.asking, func() { _ = conn.Close() })
	return askedConn{conn, stop, s.memory, s.memory.Connected(conn)}, nil
}

// askedConn is a connection to a server, what is no longer to be done once it is closed, and
// what is held for it until then.
type askedConn struct {
	net.Conn
	stop   func() bool
	memory *servermemory.Memory
	buffer *servermemory.Buffer
}

func (c askedConn) Close() error {
	c.stop()
	c.memory.Disconnected(c.buffer)
	return c.Conn.Close()
}

// Room counts what is held for the connection.
func (c askedConn) Room(more int) error { return c.memory.Add(c.buffer, more) }

// connection connects to the server, and shakes hands where a proxy before it speaks TLS.
func (s *server) connection(ctx context.Context) (net.Conn, error) {
	ctx, end := context.WithTimeout(ctx, s.env.config.Timeout)
	defer end()
	var dialer net.Dialer
	s.dials.Add(1)
	conn, err := dialer.DialContext(ctx, "tcp", s.config.Endpoint)
	if err != nil {
		s.dials.Add(-1)
		return nil, err
	}
	remote := conn.RemoteAddr()
	s.remote.Store(&remote)
	if s.tls == nil {
		return &answeredConn{Conn: conn, answered: &s.answered}, nil
	}
	config := s.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(s.config.Endpoint) // Validate has tried it
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // nothing is under way
		return nil, fmt.Errorf("%v: TLS handshake: %w", conn.RemoteAddr(), err)
	}
	return &answeredConn{Conn: secure, answered: &s.answered}, nil
}

// answeredConn counts its connection when the first bytes have been read from it: the server has
// numbered its session by then.
type answeredConn struct {
	net.Conn
	answered *atomic.Int64
	counted  atomic.Bool
}

func (c *answeredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.counted.Load() && !c.counted.Swap(true) {
		c.answered.Add(1)
	}
	return n, err
}

func (s *server) gpConfig() gp.Config {
	config := s.env.config
	return gp.Config{
		Version: uint16(config.GP.Version), Codes: config.GP.codes(), MaxFrame: config.GP.MaxFrameBytes,
		Heartbeat: config.GP.Heartbeat, MaxUnanswered: config.GP.MaxUnanswered, ProbeTimeout: config.GP.ProbeTimeout, Provoke: config.Protocol == ProtocolGP,
		WriteTimeout: config.Timeout, Location: s.env.zone,
	}
}

// gp is a link over one connection, which it owns.
func (s *server) gp(conn net.Conn, client *gp.Client) *link {
	ctx, end := context.WithCancel(s.env.asking)
	lost := make(chan struct{})
	var why error
	go func() {
		defer close(lost)
		why = client.Serve(ctx)
	}()
	return &link{
		asker: client, protocol: ProtocolGP,
		lost: lost, why: func() error { return why },
		close: func() {
			end()
			<-lost
		},
		stats: func() linkStats {
			stats := client.Stats()
			return linkStats{
				bad: stats.Dropped, lastBad: stats.LastDropped, missing: stats.Gaps, unasked: stats.Unasked, late: stats.Late,
			}
		},
		unsent: func(error) bool { return false },
	}
}

// console is a link that makes a connection for each command.
func (s *server) console() *link {
	config := s.env.config
	client := &console.Client{
		Dial: s.dial,
		Config: console.Config{
			Zone: s.env.zone, MaxReplyBytes: config.Limits.MaxReplyBytes,
			ConnectTimeout: config.Timeout, WriteTimeout: config.Timeout, AnswerTimeout: config.AnswerTimeout,
			AbortTimeout: min(config.Timeout, config.ShutdownTimeout/4),
		},
	}
	return &link{
		asker: client, protocol: ProtocolConsole,
		close: func() {},
		stats: func() linkStats {
			stats := client.Stats()
			return linkStats{bad: stats.Malformed, repeated: stats.Repeated, lost: stats.Lost, unanswered: stats.Unanswered}
		},
		unsent: func(err error) bool {
			failed := (*console.Error)(nil)
			return errors.As(err, &failed) && !failed.Sent
		},
		resetsAll: true, ends: true,
	}
}
