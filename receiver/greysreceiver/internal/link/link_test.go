// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// For example, an aborted command must not delay the shutdown.
func TestConnectionsEndWithTheContext(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer listener.Close()
	ctx, end := context.WithCancel(t.Context())
	d := &Dialer{Settings: Settings{Endpoint: listener.Addr().String(), Timeout: time.Minute, Context: ctx, Memory: servermemory.New(nil, 1)}}
	conn, err := d.Dial(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	end()
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, conn.Close(), net.ErrClosed)
}
