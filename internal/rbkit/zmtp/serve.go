// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
)

// ServerOptions are the options of a server for each of its clients. The zero value has
// the defaults.
type ServerOptions struct {
	Options
	// Connections bounds the clients; connections of further clients are closed
	// immediately. Default 256.
	Connections int
	// Report is called with the reason for the end of a connection, except for the end of
	// Serve's context. Several goroutines may call it at the same time, and Serve does not
	// wait for it. It may be nil.
	Report func(error)
}

const defaultConnections = 256

func (o ServerOptions) withDefaults() ServerOptions {
	o.Options = o.Options.withDefaults()
	if o.Connections <= 0 {
		o.Connections = defaultConnections
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	return o
}

// acceptPauses are the pauses after errors such as too many open files, which may pass.
var acceptPauses = backoff.Config{InitialInterval: 5 * time.Millisecond, MaxInterval: time.Second}

// serve accepts connections and handles each in a goroutine until ctx ends, which closes them. It
// returns after the end of all goroutines: nil, or the error of accepting.
func (o ServerOptions) serve(ctx context.Context, l net.Listener, handle func(context.Context, net.Conn) error) error {
	var handlers sync.WaitGroup
	defer handlers.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	room := make(chan struct{}, o.Connections)
	pauses := backoff.New(acceptPauses)
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			o.Report(err)
			pause(ctx, pauses.Pause())
			continue
		}
		pauses.Reset()
		select {
		case room <- struct{}{}:
		default:
			o.Report(fmt.Errorf("ZMTP peer %s: expected at most %d connections, got one more", conn.RemoteAddr(), o.Connections))
			_ = conn.Close()
			continue
		}
		handlers.Go(func() {
			defer func() { <-room }()
			if err := handle(ctx, conn); err != nil && ctx.Err() == nil {
				o.Report(err)
			}
		})
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
