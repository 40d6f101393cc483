// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Options say how a guard behaves. DefaultOptions has what is not said.
type Options struct {
	// Collectors are the addresses, host:port, that are tried in turn; at least one.
	Collectors []string
	// TLS, if not nil, is spoken with collectors.
	TLS *tls.Config
	// Dial, if not nil, opens connections to collectors instead of TLS.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Queue is how many bytes wait for a data connection of the collector before the agent
	// feels that it is slow: its connection is not read. An eighth of Memory is the most
	// for all together.
	Queue int
	// MaxWait is how long that may be so while the collector takes nothing at all, and
	// MaxWaitPerSecond for how long of each second, whatever it takes; a second: always.
	// Then 2 MiB more of the connection are read, and so on, until a quarter of Memory
	// waits.
	MaxWait, MaxWaitPerSecond time.Duration
	// Memory is how many bytes of an agent may wait for a collector that takes nothing: at
	// a quarter of it the agent is told to suspend, and what it had collected till then has
	// to fit into the rest.
	Memory int
	// TotalMemory is how many bytes of all agents together may wait and be remembered: at that
	// the one that has most is given up by its collector, or its names are forgotten. 0: a quarter
	// of the memory that the process may use, and at most a GiB.
	TotalMemory int
	// NamesMemory is how many bytes of names of an agent are remembered.
	NamesMemory int
	// Silence is after how long a collector that takes nothing of what waits counts as
	// lost.
	Silence time.Duration
	// GiveUp is after how long without a collector the agent is told that its tracing is
	// over; 0: never.
	GiveUp time.Duration
	// Retry is how long to pause after all addresses were tried.
	Retry backoff.Config
	// ConnectTimeout is how long connecting, and each answer in the handshake with a
	// collector, may take.
	ConnectTimeout time.Duration
	// StartTimeout is how long a new agent, whose program waits in front of its main,
	// waits for a collector before the program runs on untraced.
	StartTimeout time.Duration
	// HandshakeTimeout is how long a new connection has to say what it is.
	HandshakeTimeout time.Duration
	// MaxAgents is how many agents can be there at once, at most 255; others are turned
	// away.
	MaxAgents int
	// MaxNewConnections is how many connections can be open that are of no agent which was
	// taken: those that have not said what they are, and those that were refused or turned
	// away. Beyond that one of the former is closed for a new one.
	MaxNewConnections int

	// Logger, if not nil, is told what happens.
	Logger *zap.Logger
}

// maxRunID is the largest run ID, of which 0 is none.
const maxRunID = 255

// DefaultOptions are the defaults.
func DefaultOptions() Options {
	return Options{
		Queue:            128 * kib,
		MaxWait:          100 * time.Millisecond,
		MaxWaitPerSecond: 500 * time.Millisecond,
		Memory:           64 * mib,
		NamesMemory:      16 * mib,
		Silence:          30 * time.Second,
		Retry:            backoff.Config{InitialInterval: 100 * time.Millisecond, MaxInterval: 5 * time.Second},
		ConnectTimeout:   5 * time.Second,
		StartTimeout:     10 * time.Second,
		HandshakeTimeout: 10 * time.Second,
		MaxAgents:        64,

		MaxNewConnections: 1024,
	}
}

// Validate names the option that is out of its bounds.
func (o Options) Validate() error {
	const day = 24 * time.Hour
	if len(o.Collectors) == 0 {
		return errors.New("collector is not set: set it to host:port of a collector, such as localhost:8765")
	}
	for _, address := range o.Collectors {
		if err := setting.DialAddress("collector", address, "a collector", "localhost:8765"); err != nil {
			return err
		}
	}
	for _, bounds := range []error{
		setting.Within("max-wait", o.MaxWait, time.Millisecond, time.Hour),
		setting.Within("max-wait-per-second", o.MaxWaitPerSecond, 0, time.Second),
		setting.Between("memory", o.Memory, mib, 1024*mib),
		setting.Between("queue", o.Queue, chunkBytes, o.Memory/8),
		setting.Between("names-memory", o.NamesMemory, 0, o.Memory/2),
		totalBounds(o.TotalMemory),
		setting.Within("silence", o.Silence, time.Second, day),
		setting.Within("give-up", o.GiveUp, 0, 365*day),
		setting.Within("retry-initial", o.Retry.InitialInterval, time.Millisecond, time.Hour),
		setting.Within("retry-max", o.Retry.MaxInterval, o.Retry.InitialInterval, time.Hour),
		setting.Within("connect-timeout", o.ConnectTimeout, time.Millisecond, time.Hour),
		setting.Within("start-timeout", o.StartTimeout, time.Millisecond, time.Hour),
		setting.Within("handshake-timeout", o.HandshakeTimeout, time.Millisecond, time.Hour),
		setting.Between("max-agents", o.MaxAgents, 1, maxRunID),
		setting.Between("max-new-connections", o.MaxNewConnections, 1, 100_000),
	} {
		if bounds != nil {
			return bounds
		}
	}
	return nil
}

// totalShare is the part of the memory of the process that all agents may have by default, and
// maxTotal the most of that.
const totalShare, maxTotal = 4, 1 << 30

// totalBounds says what is wrong with TotalMemory.
func totalBounds(bytes int) error {
	if bytes == 0 {
		return nil
	}
	return setting.Between("total-memory", bytes, mib, math.MaxInt)
}

// totalMemory is how many bytes all agents may hold together.
func (o Options) totalMemory() int64 {
	if o.TotalMemory > 0 {
		return int64(o.TotalMemory)
	}
	return min(budget.Available()/totalShare, maxTotal)
}

// dialer opens connections to collectors.
func (o Options) dialer() func(ctx context.Context, address string) (net.Conn, error) {
	if o.Dial != nil {
		return o.Dial
	}
	d := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4},
		Control:         giveUpUnacknowledged(o.Silence),
	}
	if o.TLS != nil {
		return func(ctx context.Context, address string) (net.Conn, error) {
			return (&tls.Dialer{NetDialer: d, Config: o.TLS}).DialContext(ctx, "tcp", address)
		}
	}
	return func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}
