// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Agent is the agent of one logging library in one program. Its methods may be called
// by several goroutines.
type Agent struct {
	options Options
	// released is closed by the first "registration done".
	released chan struct{}
	release  sync.Once

	mu       sync.Mutex
	loggers  []string
	enabled  counts
	contexts counts
	faults   int // connections on which something went wrong
	stats    Stats
}

// New makes an agent.
func New(o Options) *Agent {
	return &Agent{
		options: o.withDefaults(), released: make(chan struct{}),
		enabled: counts{}, contexts: counts{},
		stats: Stats{Commands: map[lttngagent.CommandType]int{}},
	}
}

// Run plays the agent until ctx ends, in whose place the program ends. An error says
// that there is no daemon and never will be. Nothing of it is left when it returns. It
// is called once.
func (a *Agent) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	var program sync.WaitGroup
	defer program.Wait()
	defer end()
	program.Go(func() { a.makeHandler(ctx) })
	address, err := a.address()
	if err != nil && a.options.Domain == lttngagent.Python {
		return fmt.Errorf("an agent in Python looks for its daemon once: %w", err)
	}
	for {
		if err == nil {
			err = a.connect(ctx, address)
		}
		if ctx.Err() != nil {
			return nil
		}
		a.options.Log("agent %d is without a daemon: %v", a.options.PID, err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.options.Retry):
		}
		if a.options.Domain == lttngagent.Python {
			err = nil // the address stays
			continue
		}
		address, err = a.address()
	}
}

// makeHandler does what the constructor of the program's first handler does: it waits
// until the agent is registered. Then the program's loggers have it.
func (a *Agent) makeHandler(ctx context.Context) {
	begin := time.Now()
	timeout := time.NewTimer(a.options.HandlerTimeout)
	defer timeout.Stop()
	inVain := 0
	if a.options.Dialect != lttngagent.RFC {
		select {
		case <-ctx.Done():
			return
		case <-a.released:
		case <-timeout.C:
			inVain = 1
		}
	}
	a.count(func(s *Stats) { s.Handlers, s.HandlerTimeouts, s.HandlerWait = 1, inVain, time.Since(begin) })
	a.Attach(a.options.Loggers...)
}

// address is where the daemon is.
func (a *Agent) address() (string, error) {
	if a.options.PortFile == "" {
		return a.options.Address, nil
	}
	text, err := os.ReadFile(a.options.PortFile)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	port, err := strconv.ParseUint(line, 10, 16)
	if err != nil || port == 0 {
		return "", fmt.Errorf("%s: expected a port, got %q", a.options.PortFile, line)
	}
	return net.JoinHostPort("127.0.0.1", line), nil
}

// connect connects to the daemon, registers, and obeys until the connection is gone,
// which the error says, or ctx ends.
func (a *Agent) connect(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends whatever it is at
	defer func() {
		if stop() {
			_ = conn.Close() // the agent doesn't come to know how
		}
	}()
	a.count(func(s *Stats) { s.Connections++ })
	c := newConnection(a, conn)
	if err := c.register(); err != nil {
		return err
	}
	for {
		if err := c.obey(ctx); err != nil {
			return err
		}
	}
}
