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

// relayOf returns a Relay with the session of a capture.
func relayOf(t testing.TB, name string, options lttnglive.RelayOptions) (*lttnglive.Relay, []*lttnglive.Recording) {
	t.Helper()
	recordings, err := openCapture(t, name).Recordings()
	require.NoError(t, err)
	r, err := lttnglive.NewRelay(recordings, options)
	require.NoError(t, err)
	return r, recordings
}

// listen serves viewers on a loopback port until the test ends. An error in serving fails the test.
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

// pipe serves one viewer in memory and returns its end of the connection. It calls served, unless that is nil, with
// the result of Serve.
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
