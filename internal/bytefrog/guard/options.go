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

// Options configure a guard. DefaultOptions returns the defaults.
type Options struct {
	// Collectors are the addresses, host:port, in the order of tries; at least one.
	Collectors []string
	// TLS, if not nil, secures connections to collectors.
	TLS *tls.Config
	// Dial, if not nil, opens connections to collectors instead of TLS.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Queue is how many bytes may wait for a data connection of the collector before the agent's connection is not
	// read. All queues together have at most an eighth of Memory.
	Queue int
	// MaxWait is how long a connection may stay unread while the collector reads no data at all. MaxWaitPerSecond is
	// the same for each second, even if the collector reads; one second: always. Then 2 MiB more of the connection are
	// read, and so on, until a quarter of Memory waits.
	MaxWait, MaxWaitPerSecond time.Duration
	// Memory is how many bytes of an agent may wait for a collector that reads nothing. At a quarter of it the agent
	// gets suspend. The rest must have room for the data in its buffers, and for the data until its answer.
	Memory int
	// TotalMemory bounds the waiting data and the names of all agents together. At the limit the agent that holds most
	// loses its collector or its names. 0: a quarter of the memory that the process may use, and at most a GiB.
	TotalMemory int
	// NamesMemory bounds the remembered names of an agent, in bytes.
	NamesMemory int
	// Silence is the time after which a collector that reads no waiting data counts as lost.
	Silence time.Duration
	// GiveUp is the time without a collector after which the guard disconnects from the agent; 0: never.
	GiveUp time.Duration
	// Retry has the pauses after all addresses were tried.
	Retry backoff.Config
	// ConnectTimeout bounds the connection to a collector, and each answer in the handshake.
	ConnectTimeout time.Duration
	// StartTimeout is how long a new agent waits for a collector. Its program waits before its main, and then runs on
	// untraced.
	StartTimeout time.Duration
	// HandshakeTimeout bounds the time until the first message of a new connection.
	HandshakeTimeout time.Duration
	// MaxAgents bounds the number of agents, at most 255. Others are refused.
	MaxAgents int
	// MaxNewConnections bounds the open connections that belong to no accepted agent: those without a first message,
	// and those that were refused. At the limit a new connection replaces one without a first message.
	MaxNewConnections int

	// Logger, if not nil, receives log lines.
	Logger *zap.Logger
}

// maxRunID is the largest run ID. No run has the ID 0.
const maxRunID = 255

// DefaultOptions returns the defaults.
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

// Validate returns an error that names an option out of its bounds.
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

// totalBounds returns an error if TotalMemory is out of its bounds.
func totalBounds(bytes int) error {
	if bytes == 0 {
		return nil
	}
	return setting.Between("total-memory", bytes, mib, math.MaxInt)
}

// totalMemory returns the limit for all agents together, in bytes.
func (o Options) totalMemory() int64 {
	if o.TotalMemory > 0 {
		return int64(o.TotalMemory)
	}
	return min(budget.Available()/totalShare, maxTotal)
}

// dialer returns the function that opens connections to collectors.
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
