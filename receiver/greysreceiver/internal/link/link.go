// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package link connects to a Greys server by one of its two protocols. A Dialer counts its connections, and returns the
// links of sessions.
package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// Dialects of the two protocols.
var (
	// GP has one connection for all commands, and cannot abort a command.
	GP = session.Dialect{Protocol: string(greys.ProtocolGP), MaxAbandoned: gp.DefaultMaxRequests / 2, ListsRecords: true, Unconfirmed: true, CountsSessions: true}
	// Console is the text console of the released servers.
	Console = session.Dialect{Protocol: string(greys.ProtocolConsole), ResetsAll: true, Aborts: true, MixesCalls: true, NumbersSessions: true}
)

// Settings are the settings of a Dialer.
type Settings struct {
	// Endpoint is host:port. TLS is nil for a plain connection.
	Endpoint string
	TLS      *tls.Config
	Protocol greys.Protocol
	GP       gp.Config
	Console  console.Config
	// Timeout limits the time to connect, with the TLS handshake.
	Timeout time.Duration
	// Context closes all connections when it ends.
	Context context.Context
	// Memory counts the buffers of connections.
	Memory *servermemory.Memory
}

// Dialer connects to one server, and counts its connections. Several goroutines may use it.
type Dialer struct {
	Settings
	// dials is the number of connections and current attempts. answered is the number of connections that have received
	// bytes.
	dials, answered atomic.Int64
	// remote is the peer's address of the last connection; nil means none.
	remote atomic.Pointer[net.Addr]
}

// Sessions returns how many sessions of the server belong to the Dialer. The server numbers a session between the dial
// and its first bytes, so there is a lower and an upper bound.
func (d *Dialer) Sessions() (least, most int64) { return d.answered.Load(), d.dials.Load() }

// Connect returns a new link. spoke is the protocol of the last link; empty means unknown.
func (d *Dialer) Connect(ctx context.Context, spoke greys.Protocol) (*session.Link, error) {
	if d.Protocol == greys.ProtocolConsole || d.Protocol == greys.ProtocolAuto && spoke == greys.ProtocolConsole {
		return d.consoleLink(), nil
	}
	conn, err := d.Dial(ctx)
	if err != nil {
		return nil, err
	}
	probed, err := gp.Probe(ctx, conn, d.GP)
	speaks := probed.Speaks
	if err == nil && speaks == gp.SpeaksGP {
		return d.gpLink(conn, probed.Client(conn, d.GP)), nil
	}
	remote := conn.RemoteAddr()
	_ = conn.Close() // no command uses it
	switch {
	case err != nil:
		return nil, fmt.Errorf("%v: requesting the version by GP: %w", remote, err)
	case d.Protocol == greys.ProtocolAuto && (speaks == gp.SpeaksConsole || speaks == gp.SpeaksNothing):
		return d.consoleLink(), nil
	case speaks == gp.SpeaksNothing:
		return nil, fmt.Errorf("%v: %w: no answer to GP's request for the version within gp.probe_timeout (%v), and none to an empty line", remote, ErrSilent, d.GP.ProbeTimeout)
	case speaks == gp.SpeaksConsole:
		return nil, fmt.Errorf("%v: %w: set protocol to %s or %s", remote, gp.ErrConsole, greys.ProtocolConsole, greys.ProtocolAuto)
	default:
		return nil, fmt.Errorf("%v: %w", remote, errNeither)
	}
}

// ErrSilent means that a server accepts connections and sends nothing.
var ErrSilent = errors.New("the server accepts connections and sends nothing: its process hangs, or another service listens at the port")

var errNeither = errors.New("the peer speaks neither GP nor the Greys text console")

// Dial connects. The connection closes when the Context ends, which also ends pending reads and writes.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(d.Context, func() { _ = conn.Close() })
	return accountedConn{conn, stop, d.Memory, d.Memory.Connected(conn)}, nil
}

// accountedConn is a connection whose memory is counted. Close releases the memory.
type accountedConn struct {
	net.Conn
	stop   func() bool
	memory *servermemory.Memory
	buffer *servermemory.Buffer
}

func (c accountedConn) Close() error {
	c.stop()
	c.memory.Disconnected(c.buffer)
	return c.Conn.Close()
}

// Reserve counts more bytes of buffers, or fewer.
func (c accountedConn) Reserve(more int) error { return c.memory.Add(c.buffer, more) }

// dial connects, with a TLS handshake if TLS is configured for a proxy.
func (d *Dialer) dial(ctx context.Context) (net.Conn, error) {
	ctx, end := context.WithTimeout(ctx, d.Timeout)
	defer end()
	var dialer net.Dialer
	d.dials.Add(1)
	conn, err := dialer.DialContext(ctx, "tcp", d.Endpoint)
	if err != nil {
		d.dials.Add(-1)
		return nil, err
	}
	remote := conn.RemoteAddr()
	d.remote.Store(&remote)
	if d.TLS == nil {
		return &answeredConn{Conn: conn, answered: &d.answered}, nil
	}
	config := d.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(d.Endpoint) // Validate has checked it
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // no command uses it
		return nil, fmt.Errorf("%v: TLS handshake: %w", conn.RemoteAddr(), err)
	}
	return &answeredConn{Conn: secure, answered: &d.answered}, nil
}

// answeredConn counts its connection at the first read of bytes. By then the server has numbered the session.
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

// gpLink returns a link over one connection and owns the connection.
func (d *Dialer) gpLink(conn net.Conn, client *gp.Client) *session.Link {
	ctx, end := context.WithCancel(d.Context)
	lost := make(chan struct{})
	var why error
	go func() {
		defer close(lost)
		why = client.Serve(ctx)
	}()
	return &session.Link{
		Asker: client, Dialect: GP,
		Lost: lost, Why: func() error { return why },
		Close: func() {
			end()
			<-lost
		},
		Total: func() session.Stats {
			stats := client.Stats()
			return session.Stats{
				Bad: stats.Dropped, LastBad: stats.LastDropped, Missing: stats.Gaps, Unasked: stats.Unasked, Late: stats.Late,
			}
		},
		Unsent:    func(error) bool { return false },
		IsForeign: IsForeign,
	}
}

// consoleLink returns a link that opens a connection for each command.
func (d *Dialer) consoleLink() *session.Link {
	client := &console.Client{Dial: d.Dial, Config: d.Console}
	return &session.Link{
		Asker: client, Dialect: Console,
		Close: func() {},
		Total: func() session.Stats {
			stats := client.Stats()
			return session.Stats{Bad: stats.Malformed, Repeated: stats.Repeated, Lost: stats.Lost, Unanswered: stats.Unanswered}
		},
		Unsent: func(err error) bool {
			failed := (*console.Error)(nil)
			return errors.As(err, &failed) && !failed.Sent
		},
		IsForeign: IsForeign,
	}
}

// IsForeign reports whether an error shows that the peer is no Greys server, or has another version of GP.
func IsForeign(err error) bool {
	version := (*gp.VersionError)(nil)
	return errors.Is(err, greys.ErrHTTP) || errors.As(err, &version)
}
