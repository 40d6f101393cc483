// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// patienceOfTests is how long a test waits for an expected event.
const patienceOfTests = 30 * time.Second

// peer is the server's end of a connection.
type peer struct {
	t *testing.T
	net.Conn
	requests *Requests
	respID   int32
}

// connected returns a client and the server's end of its connection.
func connected(t *testing.T, config Config) (*Client, *peer) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	require.NoError(t, there.SetDeadline(time.Now().Add(patienceOfTests)))
	return NewClient(here, config), &peer{t: t, Conn: there, requests: NewRequests(there, DefaultMaxFrame)}
}

// serving returns a client that serves, the server's end, and a function that returns Serve's error.
func serving(t *testing.T, config Config) (*Client, *peer, func() error) {
	t.Helper()
	c, p := connected(t, config)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx) }()
	var err error
	over := false
	wait := func() error {
		if !over {
			over, err = true, receive(t, served)
		}
		return err
	}
	t.Cleanup(func() { end(); _ = wait() })
	return c, p, wait
}

func receive[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patienceOfTests):
		t.Fatal("nothing came")
	}
	return value
}

// request reads the next request, which must have the given type.
func (p *peer) request(want RequestType) Request {
	p.t.Helper()
	r, err := p.requests.Next()
	require.NoError(p.t, err)
	require.Equal(p.t, want, r.Type)
	return r
}

// answer writes a reply, with the next resp_id.
func (p *peer) answer(sendID int32, code ReturnCode, data string) {
	p.t.Helper()
	p.respID++
	p.raw(string(AppendAnswer(nil, Answer{SendID: sendID, RespID: p.respID, Code: code, Data: []byte(data)})))
}

// raw writes bytes.
func (p *peer) raw(data string) {
	p.t.Helper()
	_, err := p.Write([]byte(data))
	require.NoError(p.t, err)
}

// running is a command that runs.
type running struct {
	t       *testing.T
	replies chan javamethods.Reply
	over    chan error
}

// run starts a command.
func run(ctx context.Context, t *testing.T, c *Client, command javamethods.Command) *running {
	r := &running{t: t, replies: make(chan javamethods.Reply, 1000), over: make(chan error, 1)}
	go func() {
		r.over <- c.Run(ctx, command, func(reply javamethods.Reply) { r.replies <- kept(reply) })
	}()
	return r
}

func (r *running) next() javamethods.Reply { r.t.Helper(); return receive(r.t, r.replies) }

func (r *running) end() error { r.t.Helper(); return receive(r.t, r.over) }

func monitor(t *testing.T) javamethods.MonitorCommand {
	return javamethods.MonitorCommand{Target: javamethods.Target{Class: pattern(t, "a.*"), Method: pattern(t, "*")}, Cycle: time.Second}
}
