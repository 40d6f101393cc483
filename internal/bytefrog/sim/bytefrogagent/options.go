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

// Options are the addresses and time-outs of an agent. The zero value of each field except Endpoint selects its
// default.
type Options struct {
	// Endpoint is the HQ's address, host:port.
	Endpoint string
	// TLS, if not nil, is used on all connections.
	TLS *tls.Config
	// Dial, if not nil, opens connections instead of Endpoint and TLS.
	Dial func(ctx context.Context) (net.Conn, error)
	// Version of the protocol the agent speaks. Default 1.
	Version uint8
	// DataConnections replaces the number in the configuration if both are above 0.
	DataConnections int
	// BufferSize is the size of a send buffer in bytes. Default 8 KiB. It is smaller if the configured memory is too
	// small for ten buffers.
	BufferSize int
	// ConnectTimeout limits the time to reach the HQ. After it the program runs untraced. Default 30 s.
	ConnectTimeout time.Duration
	// StartTimeout limits the wait for configuration and start. After it the program counts as hung before its main
	// function. The real agent waits forever. Default 1 min.
	StartTimeout time.Duration
	// Prepare, if not nil, is called between start and the first data connection, where the real agent creates its
	// buffers. A suspend that arrives meanwhile hangs its program.
	Prepare func()
	// HangTimeout is the time after which Run returns for a hung program. Default 0.
	HangTimeout time.Duration
	// Settle is how long the control connection has to stay open after the loss of a data connection, or after the
	// agent has read error, so that its own loss is harmless. Default 250 ms: the real agent was safe after 300 ms, and
	// arrivals jitter. A busy machine needs more.
	Settle time.Duration
	// Log, if not nil, is called for events of the control connection, like fmt.Printf, from several goroutines.
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

// dial opens one connection to the HQ. It tries again until ConnectTimeout.
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
			return nil, err // another try has the same result
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
