// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secured returns both sides of a TLS connection, and the TCP connection below the server's side.
func secured(t *testing.T) (client *connection, server *tls.Conn, below *net.TCPConn) {
	t.Helper()
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	accepted := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			below = conn.(*net.TCPConn)
			server = tls.Server(conn, &tls.Config{Certificates: web.TLS.Certificates})
			err = server.Handshake()
		}
		accepted <- err
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), web.Client().Transport.(*http.Transport).TLSClientConfig)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	t.Cleanup(func() { _ = conn.Close(); _ = server.Close() })
	return newConnection(conn, Config{}), server, below
}

// sendUntilItFails sends commands until the network reports an error.
func sendUntilItFails(c *connection, wait time.Duration) error {
	for {
		if err := c.send(make([]byte, 64<<10), wait); err != nil {
			return err
		}
	}
}

func TestSendErrorsOverTLSHaveTheirCause(t *testing.T) {
	const patience = time.Minute
	for name, test := range map[string]struct {
		happens func(t *testing.T, server *tls.Conn, below *net.TCPConn)
		wait    time.Duration
		want    error
	}{
		"the server closes the TLS connection": {func(t *testing.T, server *tls.Conn, _ *net.TCPConn) { require.NoError(t, server.Close()) }, patience, ErrClosed},
		"the server's process dies": {func(t *testing.T, _ *tls.Conn, below *net.TCPConn) {
			require.NoError(t, below.SetLinger(0))
			require.NoError(t, below.Close())
		}, patience, ErrClosed},
		"the server reads nothing": {func(*testing.T, *tls.Conn, *net.TCPConn) {}, 50 * time.Millisecond, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			client, server, below := secured(t)
			test.happens(t, server, below)
			// TLS allows no further write after a failed one, and returns the same cause.
			for range 2 {
				err := sendUntilItFails(client, test.wait)
				require.ErrorIs(t, err, test.want)
				assert.ErrorContains(t, err, "expected the server to accept a command, got: ")
			}
		})
	}
}
