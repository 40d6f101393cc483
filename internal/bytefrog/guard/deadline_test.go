// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// A connection that arrives while the guard ends must send its first message soon. Its later messages have no such limit.
func TestASilentConnectionAtTheLastCallDoesNotDelayTheEnd(t *testing.T) {
	for range 20 {
		g := silentGuard(t, "127.0.0.1:1")
		g.timing.hello, g.options.HandshakeTimeout = time.Millisecond, time.Hour
		near, far := net.Pipe()
		closing := time.AfterFunc(patience, func() { _ = near.Close() })
		g.stop()
		_, err := g.readFirst(newReader(near, controlBytes), g.slots.AdmitAlways(near))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		closing.Stop()
		_ = far.Close()
	}
	g := silentGuard(t, "127.0.0.1:1")
	g.timing.hello, g.options.HandshakeTimeout = patience, time.Hour
	near, far := net.Pipe()
	defer far.Close()
	g.stop()
	limited := &deadlineConn{Conn: near}
	in := newReader(limited, controlBytes)
	go func() { _, _ = far.Write(bytefrog.Hello{Version: 1}.AppendTo(nil)) }()
	_, err := g.readFirst(in, g.slots.AdmitAlways(near))
	assert.NoError(t, err)
	assert.Greater(t, time.Until(limited.deadline), patience)
}

// deadlineConn is a connection that shows its last read deadline.
type deadlineConn struct {
	net.Conn
	deadline time.Time
}

func (c *deadlineConn) SetReadDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

// silentGuard returns a guard for a collector that does not exist.
func silentGuard(t *testing.T, collector string) *Guard {
	o := DefaultOptions()
	o.Collectors = []string{collector}
	g, err := New(o)
	assert.NoError(t, err)
	return g
}
