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

// Run runs the agent until ctx ends, which simulates the end of the program. It fails if there is no daemon and the
// agent does not try again. All its goroutines have ended when it returns. Call it once.
func (a *Agent) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	var program sync.WaitGroup
	defer program.Wait()
	defer end()
	program.Go(func() { a.makeHandler(ctx) })
	address, err := a.address()
	if err != nil && a.options.Domain == lttngagent.Python {
		return fmt.Errorf("an agent in Python reads the address of its daemon only once: %w", err)
	}
	for {
		if err == nil {
			err = a.connect(ctx, address)
		}
		if ctx.Err() != nil {
			return nil
		}
		a.options.Log("agent %d has no daemon: %v", a.options.PID, err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.options.Retry):
		}
		if a.options.Domain == lttngagent.Python {
			err = nil // the address stays the same
			continue
		}
		address, err = a.address()
	}
}

// makeHandler simulates the constructor of the program's first handler: it waits until the agent is registered. Then
// the program's loggers have the handler.
func (a *Agent) makeHandler(ctx context.Context) {
	begin := time.Now()
	timeout := time.NewTimer(a.options.HandlerTimeout)
	defer timeout.Stop()
	timeouts := 0
	if a.options.Dialect != lttngagent.RFC {
		select {
		case <-ctx.Done():
			return
		case <-a.released:
		case <-timeout.C:
			timeouts = 1
		}
	}
	a.count(func(s *Stats) { s.Handlers, s.HandlerTimeouts, s.HandlerWait = 1, timeouts, time.Since(begin) })
	a.Attach(a.options.Loggers...)
}

// address returns the address of the daemon.
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

// connect connects to the daemon, registers, and executes commands until the connection or ctx ends. The error is the
// reason.
func (a *Agent) connect(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends pending reads and writes
	defer func() {
		if stop() {
			_ = conn.Close() // the agent ignores the error
		}
	}()
	a.count(func(s *Stats) { s.Connections++ })
	c := newConnection(a, conn)
	if err := c.register(); err != nil {
		return err
	}
	for {
		if err := c.execute(ctx); err != nil {
			return err
		}
	}
}
