// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/testkit"
)

// patience is how long a test waits for an expected event.
const patience = time.Minute

// played is a server for a test.
type played struct {
	*Server
	t       *testing.T
	address string
}

func play(t *testing.T, o Options) *played {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-served)
	})
	return &played{Server: s, t: t, address: listener.Addr().String()}
}

// truth returns the counts of the present life of the process.
func (p *played) truth() Truth {
	lives := p.Lives()
	if len(lives) == 0 {
		return Truth{}
	}
	return lives[len(lives)-1]
}

// dial connects to the server. The end of the test closes the connection.
func (p *played) dial() net.Conn {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.address)
	require.NoError(p.t, err)
	require.NoError(p.t, conn.SetDeadline(time.Now().Add(patience)))
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// client returns a client that serves, and a function that returns Serve's error.
func (p *played) client(config gp.Config) (c *gp.Client, served func() error) {
	p.t.Helper()
	c = gp.NewClient(p.dial(), config)
	ctx, end := context.WithCancel(context.Background())
	over := make(chan struct{})
	var err error
	go func() {
		defer close(over)
		err = c.Serve(ctx)
	}()
	p.t.Cleanup(func() {
		end()
		<-over
	})
	return c, func() error {
		p.t.Helper()
		select {
		case <-over:
			return err
		case <-time.After(patience):
			p.t.Fatal("the connection stays open")
			return nil
		}
	}
}

func target(t *testing.T, class, method string) javamethods.Target {
	return javamethods.Target{Class: pattern(t, class), Method: pattern(t, method)}
}

func pattern(t *testing.T, text string) javamethods.Pattern {
	t.Helper()
	p, err := javamethods.NewPattern(text)
	require.NoError(t, err)
	return p
}

// eventually waits for a condition.
func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.True(t, testkit.Happens(condition), what)
}
