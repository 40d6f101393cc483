// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// dial connects to the extension, and sends something.
func (b *bed) dial(text string) net.Conn {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.extension.address.String())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	require.NoError(b.t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprint(conn, text)
	require.NoError(b.t, err)
	return conn
}

func (b *bed) awaitConnections(open, silent int) {
	b.t.Helper()
	b.await(fmt.Sprintf("%d connections, %d silent", open, silent), func() bool {
		c := b.extension.connections
		return c.Open() == open && c.Waiting() == silent
	})
}

// bodiless is a request whose body doesn't arrive.
func bodiless(id string) string {
	return fmt.Sprintf("POST /v1/agents/%s/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n", id, api.TypeJSON)
}

func TestSilentConnectionsAreReplaced(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxConnections = 6 })
	for _, text := range []string{"", "GET / HTTP/1.1\r\nHost"} {
		for range 10 {
			b.dial(text)
		}
	}
	b.await("20 connections", func() bool { return b.counter("otelcol_extension_agent_control_connections_closed") == 17 })
	b.awaitConnections(3, 3)
	assert.Empty(t, b.list(), "a client with a request is served")
}

func TestANewConnectionIsClosedIfAllOthersHaveRequests(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxConnections = 4 })
	f := newFake("one")
	b.extension.Register(f)
	for range 2 {
		b.dial(bodiless(f.id))
	}
	b.awaitConnections(2, 0)
	_, err := b.dial("").Read(make([]byte, 1))
	require.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is closed")
	b.awaitConnections(2, 0)
}

func TestConnectionsThatWaitForTheNextRequestAreSilent(t *testing.T) {
	b := newBed(t)
	conn := b.dial("GET /v1/agents HTTP/1.1\r\nHost: localhost\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	b.awaitConnections(1, 1)
	require.NoError(t, conn.Close())
	b.awaitConnections(0, 0)
}

func TestAShutdownDoesNotWaitForSilentConnections(t *testing.T) {
	b := newBed(t)
	b.dial("")
	b.awaitConnections(1, 1)
	// The server itself waits 5 s for a connection that is new.
	left := make(chan int, 1)
	b.extension.server.RegisterOnShutdown(func() {
		left <- b.extension.connections.Open()
	})
	assert.NoError(t, b.extension.Shutdown(context.Background()))
	assert.Zero(t, <-left, "connections that the server waits for")
	conn, other := net.Pipe()
	defer other.Close()
	require.NoError(t, other.SetReadDeadline(time.Now().Add(patience)))
	b.extension.server.ConnState(conn, http.StateNew)
	_, err := other.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "a later connection is closed immediately")
}

// A client that never reads is disconnected when the time of a shutdown is over.
func TestAShutdownDisconnectsClientsThatNeverRead(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	running, release := make(chan struct{}), make(chan struct{})
	f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
		close(running)
		<-release
		return agentcontrol.Answer{}, nil
	}
	b.extension.Register(f)
	const order = `{"command":"suspend"}`
	conn := b.dial(fmt.Sprintf("POST /v1/agents/%s/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", f.id, api.TypeJSON, len(order), order))
	<-running
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // its time is over
	assert.NoError(t, b.extension.Shutdown(ctx))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is closed")
	close(release)
	b.await("the record of it", func() bool { return len(f.told()) == 1 })
}

func TestRequestsWithoutTheirBodyUseNoPlace(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxRequests = 2 })
	f := newFake("one")
	b.extension.Register(f)
	for range 10 {
		b.dial(bodiless(f.id))
	}
	b.awaitConnections(10, 0)
	for range 3 {
		status, reason := b.refusedOrder(f.id, `{"command":"suspend"}`)
		assert.Equal(t, http.StatusOK, status, reason)
	}
}
