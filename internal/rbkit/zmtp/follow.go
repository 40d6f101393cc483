// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
)

// Following is a subscription that lasts: when the connection ends, it dials another after
// a pause.
type Following struct {
	// Dial dials the publisher. Its context ends after Options.Timeout.
	Dial     func(context.Context) (net.Conn, error)
	Options  Options
	Prefixes [][]byte // to subscribe to
	Backoff  backoff.Config

	// Connected is called after the subscription. Lost is called after a failed connection or
	// try, with the pause before the next try. Messages of the publisher between Lost and
	// Connected are lost. Message gets every message, as with Subscriber.Receive.
	Connected func(peer net.Addr)
	Message   func(Message) error
	Lost      func(err error, pause time.Duration)
}

// Run follows the publisher until ctx ends, and returns its cause, or until Message returns
// an error, and returns that error unchanged. The goroutine of Run calls all functions, and
// Run leaves no goroutine behind.
func (f Following) Run(ctx context.Context) error {
	pauses := backoff.New(f.Backoff)
	for {
		lasted, handled, err := f.followOnce(ctx)
		if handled != nil {
			return handled
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// A peer that accepts each connection and closes it immediately counts as failing.
		if lasted > f.Backoff.MaxInterval {
			pauses.Reset()
		}
		wait := pauses.Pause()
		f.Lost(err, wait)
		pause(ctx, wait)
	}
}

// followOnce follows one connection to its end, and returns its duration. handled is the error of
// Message.
func (f Following) followOnce(ctx context.Context) (lasted time.Duration, handled, err error) {
	s, err := f.subscribe(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer s.Close()
	began := time.Now()
	f.Connected(s.traffic.conn.RemoteAddr())
	err = s.Receive(ctx, func(m Message) error {
		handled = f.Message(m)
		return handled
	})
	return time.Since(began), handled, err
}

func (f Following) subscribe(ctx context.Context) (*Subscriber, error) {
	within, end := context.WithTimeoutCause(ctx, f.Options.withDefaults().Timeout, ErrTimeout)
	defer end()
	conn, err := f.Dial(within)
	if err != nil {
		return nil, err
	}
	return Subscribe(ctx, conn, f.Options, f.Prefixes...)
}
