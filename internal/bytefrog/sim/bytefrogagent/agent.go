// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Options are the addresses and time-outs of an agent. The zero value of each
// field but Endpoint is a default.
type Options struct {
	// Endpoint is the HQ's address, host:port.
	Endpoint string
	// TLS, if not nil, is used on all connections.
	TLS *tls.Config
	// Dial, if not nil, opens connections instead of Endpoint and TLS.
	Dial func(ctx context.Context) (net.Conn, error)
	// Version of the protocol the agent speaks. Default 1.
	Version uint8
	// DataConnections overrides the number in the configuration if both are above 0.
	DataConnections int
	// BufferSize of a send buffer in bytes. Default 8 KiB. Less if the configured
	// memory holds no ten buffers.
	BufferSize int
	// ConnectTimeout is how long the agent tries to reach the HQ before the program
	// runs untraced. Default 30 s.
	ConnectTimeout time.Duration
	// StartTimeout bounds the wait for configuration and start. Then the program counts
	// as hung before its main function. The real agent waits forever. Default 1 min.
	StartTimeout time.Duration
	// Prepare, if not nil, is called between start and the first data connection, where
	// the real agent makes its buffers. What it is told meanwhile hangs its program.
	Prepare func()
	// HangTimeout is how long a hung program hangs before Run returns. Default 0.
	HangTimeout time.Duration
	// Settle is how long the control connection has to outlive a data connection, or
	// the moment in which the agent read error, for its own loss to be harmless.
	// Default 250 ms: the real agent was seen to be safe after 300 ms, and arrivals
	// jitter. One on a busy machine needs longer.
	Settle time.Duration
	// Log, if not nil, is called for what happens on the control connection, in the
	// manner of fmt.Printf, from several goroutines.
	Log func(format string, args ...any)
}

// Defaults of Options.
const (
	DefaultBufferSize     = 8 << 10
	DefaultConnectTimeout = 30 * time.Second
	DefaultStartTimeout   = time.Minute
	DefaultSettle         = 250 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.Version == 0 {
		o.Version = bytefrog.MinVersion
	}
	if o.BufferSize <= 0 {
		o.BufferSize = DefaultBufferSize
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = DefaultStartTimeout
	}
	if o.Settle <= 0 {
		o.Settle = DefaultSettle
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Dial == nil {
		o.Dial = dialer(o.Endpoint, o.TLS)
	}
	return o
}

// Program is a traced program.
type Program interface {
	// Run makes the program's calls and writes them into buffers of t. It returns nil
	// at the program's end and when t says that tracing is over (an error of t may be
	// returned as it is), and any other error if it cannot go on.
	Run(t *Tracer) error
}

// Agent is one agent in one traced program. Run it once.
type Agent struct {
	run *run
}

// New returns an agent that traces p.
func New(o Options, p Program) *Agent {
	return &Agent{run: newRun(o.withDefaults(), p)}
}

// Run connects, runs the program and returns what became of it when all connections
// are closed and all goroutines have ended. The end of ctx kills the program's
// process: its connections are cut off.
func (a *Agent) Run(ctx context.Context) Result { return a.run.play(ctx) }

// Stop ends the program early but in order, as its user can. It does not wait.
func (a *Agent) Stop() { a.run.change(func(l *life) { l.quit() }) }

// Freeze stops the program's process, as a debugger or a paused machine does: nothing
// is read, obeyed or sent until Thaw. What the HQ sends meanwhile waits.
func (a *Agent) Freeze() { a.run.change(func(l *life) { l.frozen = true }) }

// Thaw lets a frozen process go on.
func (a *Agent) Thaw() { a.run.change(func(l *life) { l.frozen = false }) }

// Stats returns what the agent did so far. It may be called while Run runs.
func (a *Agent) Stats() Stats { return a.run.statistics() }

// dial opens one connection to the HQ, trying again until ConnectTimeout is over.
func dial(ctx context.Context, o Options) (net.Conn, error) {
	const firstPause, longestPause = 20 * time.Millisecond, time.Second
	ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
	defer cancel()
	pause := firstPause
	for {
		conn, err := o.Dial(ctx)
		if err == nil {
			return conn, nil
		}
		var wrong *tls.CertificateVerificationError
		if errors.As(err, &wrong) {
			return nil, err // trying again changes nothing
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

func dialer(endpoint string, config *tls.Config) func(context.Context) (net.Conn, error) {
	if config != nil {
		d := &tls.Dialer{Config: config}
		return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", endpoint) }
	}
	d := &net.Dialer{}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", endpoint) }
}
