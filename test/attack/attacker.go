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
	// Attack attacks until the attacker has done all that it does, or ctx ends. No
	// connection and no goroutine of it is left when it returns. The error is that of the
	// attacker itself; a collector that refuses it is none.
	Attack(ctx context.Context) error
	// Sent says in words what the attacker sent so far. Other goroutines may call it.
	Sent() string
}

// tally counts what an attacker did.
type tally struct{ connections, unreached, refused, messages, bytes atomic.Int64 }

// mib is a number of bytes in words.
func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// dial opens a connection that ends with ctx, from one of several loopback addresses, by
// turns. The caller closes it.
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

// pause waits, and reports whether ctx goes on.
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

// together runs n peers at the same time, and waits for all. Each gets its index.
func together(n int, peer func(turn int)) {
	var all sync.WaitGroup
	for turn := range n {
		all.Go(func() { peer(turn) })
	}
	all.Wait()
}

// again has so many peers connect at once. Each uses its connection, which is then closed, and
// comes again after a rest, until ctx ends.
func (n *tally) again(ctx context.Context, endpoint string, peers int, rest time.Duration, use func(net.Conn)) {
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
