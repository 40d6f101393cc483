// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// noise makes connections with garbage, to randomly chosen addresses.
func noise(ctx context.Context, addresses []string, seed uint64) (made int64) {
	random := rand.New(rand.NewPCG(seed, 1))
	var open sync.WaitGroup
	defer open.Wait()
	var dialer net.Dialer
	for ctx.Err() == nil {
		connection, err := dialer.DialContext(ctx, "tcp", addresses[random.IntN(len(addresses))])
		if err != nil {
			continue
		}
		made++
		open.Go(func() { babble(ctx, connection, random.Uint64()) })
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return made
}

// babble writes some garbage, or an agent's hello, in one piece or byte by byte. Then it
// disconnects; after a hello it stays for a while.
func babble(ctx context.Context, connection net.Conn, seed uint64) {
	defer connection.Close()
	random := rand.New(rand.NewPCG(seed, 2))
	garbage := make([]byte, random.IntN(1000))
	for i := range garbage {
		garbage[i] = byte(random.Uint32())
	}
	isHello := random.IntN(10) == 0
	if isHello {
		garbage = bytefrog.Hello{Version: bytefrog.MinVersion}.AppendTo(nil)
	}
	pause := []time.Duration{0, 50 * time.Millisecond, time.Second}[random.IntN(3)]
	piece := len(garbage)
	if pause > 0 {
		piece = 1
	}
	for len(garbage) > 0 && ctx.Err() == nil {
		n := min(piece, len(garbage))
		if _, err := connection.Write(garbage[:n]); err != nil {
			return
		}
		garbage = garbage[n:]
		time.Sleep(pause)
	}
	if isHello {
		awaitEnd(ctx, connection)
	}
}

// awaitEnd reads until the peer closes the connection, a minute is over, or ctx ends. The collector
// waits for an agent that it disconnects, because the agent's program would hang.
func awaitEnd(ctx context.Context, connection net.Conn) {
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	if err := connection.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return // it is closed
	}
	for b := make([]byte, 64); ; {
		if _, err := connection.Read(b); err != nil {
			return
		}
	}
}
