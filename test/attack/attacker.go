// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Attacker is one kind of hostile peer.
type Attacker interface {
	// Attack attacks until the attacker is finished or ctx ends. When it returns, all its
	// connections and goroutines have ended. The error is a failure of the attacker itself. A
	// collector that refuses it is no error.
	Attack(ctx context.Context) error
	// Sent describes the data that the attacker has sent. Other goroutines may call it.
	Sent() string
}

// tally counts the actions of an attacker.
type tally struct{ connections, unreached, refused, messages, bytes atomic.Int64 }

// sendEndlessly sends a text again and again, 20 times each second, until the client disconnects or ctx ends.
func (t *tally) sendEndlessly(ctx context.Context, connection net.Conn, text []byte) {
	go func() { _, _ = connection.Read(make([]byte, 1)) }() // the request does not matter; the read ends with the connection
	for pause(ctx, 50*time.Millisecond) {
		written, err := connection.Write(text)
		t.bytes.Add(int64(written))
		if err != nil {
			return
		}
	}
}

// mib formats a number of bytes.
func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// dial opens a connection that ends with ctx, from one of several loopback addresses in turn. The
// caller closes it.
func dial(ctx context.Context, endpoint string, turn int) (net.Conn, error) {
	const addresses = 200 // 127.0.1.1 and so on
	dialer := net.Dialer{
		Timeout:   10 * time.Second,
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+turn%addresses))},
	}
	connection, err := dialer.DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = connection.Close() }) // its reader learns of it
	return connection, nil
}

// pause waits for d, and returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// together runs n peers at the same time, and returns when all have ended. Each gets its index.
func together(n int, peer func(turn int)) {
	var all sync.WaitGroup
	for turn := range n {
		all.Go(func() { peer(turn) })
	}
	all.Wait()
}

// repeat lets a number of peers connect at the same time. Each calls use with its connection,
// closes it, rests, and connects again, until ctx ends.
func (n *tally) repeat(ctx context.Context, endpoint string, peers int, rest time.Duration, use func(net.Conn)) {
	const unreachable = 100 * time.Millisecond
	together(peers, func(turn int) {
		for ctx.Err() == nil {
			connection, err := dial(ctx, endpoint, turn)
			if err != nil {
				n.unreached.Add(1)
				pause(ctx, unreachable)
				continue
			}
			n.connections.Add(1)
			use(connection)
			_ = connection.Close() // the end of ctx may have done so
			pause(ctx, rest)
		}
	})
}
