// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// The replies before the one of a hostile relay daemon.
const (
	connected      = "0000000000000001 00000002 0000000D 00000000"
	sessionCreated = "00000001"
	noStreams      = "00000001 00000000"
)

// hostile returns a connection to a relay daemon that answers each request with the next reply, and then calls end.
func hostile(t *testing.T, end func(conn net.Conn), replies ...string) net.Conn {
	t.Helper()
	viewer, relay := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, reply := range replies {
			if err := skipRequest(relay); err != nil {
				return
			}
			if _, err := relay.Write(unhex(t, reply)); err != nil {
				return
			}
			if i == len(replies)-1 && end != nil {
				end(relay)
			}
		}
	}()
	t.Cleanup(func() {
		viewer.Close()
		relay.Close()
		<-done
	})
	return viewer
}

// skipRequest reads a request.
func skipRequest(conn net.Conn) error {
	var header [16]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint64(header[:])))
	return err
}

func closeNow(conn net.Conn) { conn.Close() }

// readHostile attaches a session and requests the next index.
func readHostile(ctx context.Context, conn net.Conn, options lttnglive.ViewerOptions) error {
	v, err := lttnglive.Connect(ctx, conn, options)
	if err != nil {
		return err
	}
	a, _, err := v.Attach(ctx, 1, lttnglive.SeekBeginning)
	if err != nil {
		return err
	}
	_, err = a.NextIndex(ctx, 5)
	return err
}

func TestAnIncompleteReplyIsAnError(t *testing.T) {
	cases := []struct {
		name    string
		end     func(net.Conn)
		replies []string
		is      error
		err     string
	}{
		{
			"closed instead of connecting", closeNow, []string{""}, lttnglive.ErrClosed,
			"relay daemon pipe, connect: byte 0 of the reply: expected 20 more bytes, got: the connection was closed",
		},
		{
			"closed in the middle of a reply", closeNow, []string{connected, sessionCreated, noStreams, strings.Repeat("00", 63)}, lttnglive.ErrClosed,
			"relay daemon pipe, get next index: byte 63 of the reply: expected 1 more bytes, got: the connection was closed",
		},
		{
			"stalled in the middle of a reply", nil, []string{connected, sessionCreated, noStreams, strings.Repeat("00", 10)}, lttnglive.ErrTimeout,
			"relay daemon pipe, get next index: byte 10 of the reply: expected 54 more bytes, got: time ran out",
		},
		{
			"streams that never arrive", nil, []string{connected, sessionCreated, "00000001 00010000"}, lttnglive.ErrTimeout,
			"relay daemon pipe, attach session: byte 8 of the reply: expected 4371 more bytes, got: time ran out",
		},
		{
			"requests that are not read", nil, []string{connected, sessionCreated}, lttnglive.ErrTimeout,
			"relay daemon pipe, attach session: byte 0 of the request: expected 36 more bytes, got: time ran out",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := readHostile(t.Context(), hostile(t, c.end, c.replies...), lttnglive.ViewerOptions{})
				require.ErrorIs(t, err, c.is)
				assert.EqualError(t, err, c.err)
				var transfer *lttnglive.TransferError
				assert.ErrorAs(t, err, &transfer)
			})
		})
	}
}

// Wrong replies of the table break the connection, independent of the following bytes.
func TestAProtocolErrorMakesTheConnectionUnusable(t *testing.T) {
	conn := hostile(t, nil, connected, "00000003", "00000000")
	v, err := lttnglive.Connect(t.Context(), conn, lttnglive.ViewerOptions{Limits: lttnglive.Limits{Sessions: 2}})
	require.NoError(t, err)
	_, err = v.Sessions(t.Context())
	var wrong *lttnglive.ProtocolError
	require.ErrorAs(t, err, &wrong)
	require.EqualError(t, err, "relay daemon pipe, list sessions: byte 0: expected at most 2 sessions, got 3")
	_, err = v.Sessions(t.Context())
	var broken *lttnglive.BrokenError
	require.ErrorAs(t, err, &broken)
	assert.False(t, errors.As(err, &wrong), "the cause is that of another command")
	assert.EqualError(t, err, "relay daemon pipe, list sessions: the connection is unusable after an earlier error: list sessions: byte 0: expected at most 2 sessions, got 3")
}

func TestCreateSessionIsRefused(t *testing.T) {
	err := readHostile(t.Context(), hostile(t, nil, connected, "00000002"), lttnglive.ViewerOptions{})
	var status *lttnglive.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, lttnglive.CreateSessionError, status.Status)
}

// A relay daemon that sends a reply byte by byte cannot delay a viewer longer than one that stalls. A relay daemon
// that sends a large reply slowly, but steadily, has enough time.
func TestADeadlineCoversProgressAndNotBytes(t *testing.T) {
	const size = 1 << 20
	metadata := append(binary.BigEndian.AppendUint64(nil, size), be32(1)...)
	send := func(bytes int, every time.Duration) func(net.Conn) {
		return func(conn net.Conn) {
			if skipRequest(conn) != nil {
				return
			}
			if _, err := conn.Write(metadata); err != nil {
				return
			}
			piece := make([]byte, bytes)
			for range size / bytes {
				time.Sleep(every) // in the test's fake time
				if _, err := conn.Write(piece); err != nil {
					return
				}
			}
		}
	}
	read := func(t *testing.T, end func(net.Conn)) (lttnglive.MetadataReply, error) {
		v, err := lttnglive.Connect(t.Context(), hostile(t, end, connected, sessionCreated, noStreams), lttnglive.ViewerOptions{})
		require.NoError(t, err)
		a, _, err := v.Attach(t.Context(), 1, lttnglive.SeekBeginning)
		require.NoError(t, err)
		return a.Metadata(t.Context(), 6, nil)
	}
	t.Run("one byte a second", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, err := read(t, send(1, time.Second))
			require.ErrorIs(t, err, lttnglive.ErrTimeout)
		})
	})
	t.Run("64 KiB in each nine seconds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reply, err := read(t, send(64<<10, 9*time.Second))
			require.NoError(t, err)
			assert.Len(t, reply.Data, size)
		})
	})
}

// A context ends every command immediately, at any point, with its cause.
func TestAContextEndsACommand(t *testing.T) {
	for name, replies := range map[string][]string{
		"before the reply": {connected, sessionCreated, noStreams, ""},
		"in the reply":     {connected, sessionCreated, noStreams, strings.Repeat("00", 10)},
		"in the request":   {connected, sessionCreated, noStreams},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cause := errors.New("shutting down")
				ctx, cancel := context.WithCancelCause(t.Context())
				conn := hostile(t, nil, replies...)
				go func() {
					synctest.Wait() // until the viewer waits for its relay daemon
					cancel(cause)
				}()
				before := time.Now()
				err := readHostile(ctx, conn, lttnglive.ViewerOptions{})
				require.ErrorIs(t, err, cause)
				assert.Equal(t, before, time.Now(), "in the test's own time")
			})
		})
	}
}

// With a context that has ended already, the viewer sends nothing. The connection can be used with another context.
func TestAnEndedContextDoesNotBreakTheConnection(t *testing.T) {
	v, err := lttnglive.Connect(t.Context(), hostile(t, nil, connected, "00000000"), lttnglive.ViewerOptions{})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = v.Sessions(ended)
	require.ErrorIs(t, err, context.Canceled)
	sessions, err := v.Sessions(t.Context())
	require.NoError(t, err)
	assert.Empty(t, sessions)
}

// Announced data uses no memory before it arrives.
func TestAnnouncedBytesUseNoMemory(t *testing.T) {
	metadata := "0000000004000000 00000001" // 64 MiB
	synctest.Test(t, func(t *testing.T) {
		v, err := lttnglive.Connect(t.Context(), hostile(t, nil, connected, sessionCreated, noStreams, metadata), lttnglive.ViewerOptions{})
		require.NoError(t, err)
		a, _, err := v.Attach(t.Context(), 1, lttnglive.SeekBeginning)
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = a.Metadata(t.Context(), 6, nil)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, lttnglive.ErrTimeout)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
	})
}

// emptyConn returns neither bytes nor an error.
type emptyConn struct{ net.Conn }

func (emptyConn) Read([]byte) (int, error) { return 0, nil }

func TestAConnectionWithoutBytesAndErrorsIsAbandoned(t *testing.T) {
	_, err := lttnglive.Connect(t.Context(), emptyConn{hostile(t, nil, "")}, lttnglive.ViewerOptions{})
	require.ErrorIs(t, err, io.ErrNoProgress)
}
