// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// relayOf makes a Relay that serves what a capture's viewer was served.
func relayOf(t testing.TB, name string, options lttnglive.RelayOptions) (*lttnglive.Relay, []*lttnglive.Recording) {
	t.Helper()
	recordings, err := openCapture(t, name).Recordings()
	require.NoError(t, err)
	r, err := lttnglive.NewRelay(recordings, options)
	require.NoError(t, err)
	return r, recordings
}

// listen serves viewers on a port of loopback until the test ends, and fails it where
// serving one does.
func listen(t testing.TB, r *lttnglive.Relay) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				if err := r.Serve(ctx, conn); !errors.Is(err, context.Canceled) {
					assert.NoError(t, err)
				}
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, listener.Close())
		serving.Wait()
	})
	return listener.Addr().String()
}

// pipe serves one viewer in memory, and gives its end of the connection. What serving
// it returns is given to served, if that is not nil.
func pipe(t testing.TB, r *lttnglive.Relay, served func(error)) net.Conn {
	t.Helper()
	viewer, relay := net.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() {
		err := r.Serve(context.Background(), relay)
		relay.Close()
		if served != nil {
			served(err)
		}
	})
	t.Cleanup(func() {
		viewer.Close()
		serving.Wait()
	})
	return viewer
}
