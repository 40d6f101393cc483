// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"net"
)

// Subscriber is a SUB socket with one connection (RFC 29). It is for one goroutine.
type Subscriber struct {
	traffic *traffic
}

// Subscribe makes a dialled connection the connection of a SUB socket. It subscribes to messages
// whose first part begins with one of the prefixes; an empty prefix is for all messages. The
// subscriber owns the connection, and Close closes it. If Subscribe fails, it closes the
// connection. Errors are *Error.
func Subscribe(ctx context.Context, conn net.Conn, options Options, prefixes ...[]byte) (*Subscriber, error) {
	t, err := connect(ctx, conn, Sub, options)
	if err != nil {
		return nil, err
	}
	err = t.runUnder(ctx, func() error {
		for _, prefix := range prefixes {
			t.out = appendSubscription(t.out[:0], t.minor, prefix)
			if err := t.write(t.out); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Subscriber{traffic: t}, nil
}

// The first byte of a message to a PUB socket of 3.0 (RFC 23, "The Publish-Subscribe Pattern").
const (
	cancelByte    = 0
	subscribeByte = 1
)

// appendSubscription appends a subscription of the agreed version: a message in 3.0, a command in
// 3.1.
func appendSubscription(b []byte, minor byte, prefix []byte) []byte {
	if minor > 0 {
		return appendCommand(b, commandSubscribe, prefix)
	}
	b = appendHeader(b, 0, 1+len(prefix))
	return append(append(b, subscribeByte), prefix...)
}

// Receive calls handle with each message until ctx or the connection ends, or until handle
// returns an error. It returns an error of handle unchanged, and can be called again then.
// All other errors are *Error, and the connection is closed. handle still gets the messages
// that have arrived when ctx ends.
//
// handle may use the message until it returns. While it runs, Receive reads nothing, and a
// publisher with a full queue drops messages.
func (s *Subscriber) Receive(ctx context.Context, handle func(Message) error) error {
	var handled error
	err := s.traffic.runUnder(ctx, func() error {
		for handled == nil {
			message, err := s.traffic.receive()
			if err != nil {
				return err
			}
			handled = handle(message)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return handled
}

// Close closes the connection. It may be called again.
func (s *Subscriber) Close() error { return closeOnce(s.traffic.conn) }
