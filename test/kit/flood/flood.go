// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package flood attacks a listener with idle connections: each is opened again as soon
// as the listener closes it. It knows no protocol.
package flood

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Options describe an attack.
type Options struct {
	// Address is the target, host:port.
	Address string
	// Connections is how many are open or being opened at any time.
	Connections int
	// From are the local addresses of the connections in turn, without port; empty: the system
	// chooses. On Linux all of 127.0.0.0/8 are local.
	From []string
	// Send is sent on each connection as soon as it is open; empty: nothing.
	Send []byte
	// Trickle sends Send byte by byte, one in this time; 0: all together.
	Trickle time.Duration
}

// Loopback are n addresses of this machine, none of which is 127.0.0.1.
func Loopback(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("127.0.%d.%d", 1+i/250, 1+i%250)
	}
	return all
}

// Flood is a running attack.
type Flood struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	open                   atomic.Int64
	opened, closed, failed atomic.Uint64
}

// Counts are the counts of a flood.
type Counts struct {
	// Open connections are open now.
	Open int64
	// Opened, Closed and Failed are how many were opened, closed by the other side, and
	// could not be opened.
	Opened, Closed, Failed uint64
}

// pause is how long a connection that could not be opened waits.
const pause = 10 * time.Millisecond

// Start starts an attack, which continues until Stop.
func Start(o Options) *Flood {
	f := &Flood{options: o}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	for i := range o.Connections {
		f.running.Go(func() { f.attack(i) })
	}
	return f
}

// Counts are the counts until now.
func (f *Flood) Counts() Counts {
	return Counts{Open: f.open.Load(), Opened: f.opened.Load(), Closed: f.closed.Load(), Failed: f.failed.Load()}
}

// Stop ends the attack. It returns when all connections are closed.
func (f *Flood) Stop() {
	f.cancel()
	f.running.Wait()
}

// attack opens one connection again and again.
func (f *Flood) attack(i int) {
	var dialer net.Dialer
	if n := len(f.options.From); n > 0 {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(f.options.From[i%n])}
	}
	for f.ctx.Err() == nil {
		conn, err := dialer.DialContext(f.ctx, "tcp", f.options.Address)
		if err != nil {
			f.failed.Add(1)
			f.wait(pause)
			continue
		}
		f.opened.Add(1)
		f.open.Add(1)
		f.idle(conn)
		f.open.Add(-1)
	}
}

// idle holds a connection until the other side closes it, or the attack ends.
func (f *Flood) idle(conn net.Conn) {
	// A connection that is reset leaves no state in the system.
	_ = conn.(*net.TCPConn).SetLinger(0)
	defer conn.Close()
	defer context.AfterFunc(f.ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	f.send(conn)
	_, _ = io.Copy(io.Discard, conn) // the end is all that is awaited
	if f.ctx.Err() == nil {
		f.closed.Add(1)
	}
}

func (f *Flood) send(conn net.Conn) {
	if f.options.Trickle == 0 {
		if len(f.options.Send) > 0 {
			_, _ = conn.Write(f.options.Send) // the read sees why it failed
		}
		return
	}
	for i := range f.options.Send {
		if _, err := conn.Write(f.options.Send[i : i+1]); err != nil || !f.wait(f.options.Trickle) {
			return
		}
	}
}

// wait waits, and reports false when the attack ends meanwhile.
func (f *Flood) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.ctx.Done():
		return false
	}
}
