// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// patience bounds the wait of a test.
const patience = 60 * time.Second

// soon is a time-out that must pass in a test.
const soon = 20 * time.Millisecond

// never is a time-out that must not pass in a test.
const never = time.Hour

// dial is a connection to an address.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// peer accepts one connection and has it handled; the connection is closed with the test.
func peer(t testing.TB, handle func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		accepted <- conn
		handle(conn)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		select {
		case conn := <-accepted:
			_ = conn.Close()
		default:
		}
		<-done
	})
	return l.Addr().String()
}

// tell writes bytes of a peer. The other side may be gone.
func tell(conn net.Conn, what string) { _, _ = io.WriteString(conn, what) }

// hear reads until the end of the connection.
func hear(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// whereSilent are the places where a peer can be silent, with the bytes before.
var whereSilent = []struct {
	name, says string
	// idle: the silence is allowed, since no message has begun.
	idle bool
	err  string
}{
	{"from the begin", "", false, "greeting: byte 0: expected a ZMTP 3 greeting, got: time ran out"},
	{"in the greeting", null31[:20], false, "greeting: byte 20: expected a ZMTP 3 greeting, got: time ran out"},
	{"before the handshake", null31, false, "handshake: byte 64: expected the command READY, got: time ran out"},
	{"in the handshake", null31 + ready("PUB")[:5], false, "handshake: byte 69: expected the command READY, got: time ran out"},
	{"before the first message", pub, true, "traffic: byte 91: expected a frame, or an answer to PING, got: time ran out"},
	{"between messages", pub + "\x00\x01a", true, "traffic: byte 94: expected a frame, or an answer to PING, got: time ran out"},
	{"between parts", pub + "\x01\x01a", false, "traffic: byte 94: expected a frame, got: time ran out"},
	{"in a frame", pub + "\x00\x05abc", false, "traffic: byte 96: expected the rest of a frame, got: time ran out"},
	{"in a command", pub + "\x04\x07\x04PI", false, "traffic: byte 96: expected the rest of a frame, got: time ran out"},
}

// follow subscribes and receives until that ends.
func follow(ctx context.Context, conn net.Conn, options zmtp.Options) error {
	s, err := zmtp.Subscribe(ctx, conn, options, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Receive(ctx, func(zmtp.Message) error { return nil })
}

// newSilent returns a connection whose other side sends bytes and is then silent: each later read
// fails immediately as at its deadline. So a busy machine changes nothing.
func newSilent(sends string) *script {
	s := newScript(sends, 0)
	s.then = os.ErrDeadlineExceeded
	return s
}

func TestASilentPeerIsDisconnected(t *testing.T) {
	for _, tt := range whereSilent {
		t.Run(tt.name, func(t *testing.T) {
			conn := newSilent(tt.says)
			err := follow(t.Context(), conn, zmtp.Options{Timeout: never, Heartbeat: never})
			require.ErrorContains(t, err, tt.err)
			require.ErrorIs(t, err, zmtp.ErrTimeout)
			require.Equal(t, tt.idle, strings.HasSuffix(conn.told.String(), pingNoLimit), "a PING before the end")
		})
	}
}

func TestAServerThatWaitsForAllOfOurGreetingGetsIt(t *testing.T) {
	address := peer(t, func(conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len(null31))); err != nil {
			return
		}
		tell(conn, pub+"\x00\x01a")
		hear(conn)
	})
	s, err := zmtp.Subscribe(t.Context(), dial(t, address), zmtp.Options{Timeout: patience}, nil)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, "a", string(next(t, s)))
}

func TestAContextEndsEveryWait(t *testing.T) {
	stopped := errors.New("stopped")
	for _, tt := range whereSilent {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			address := peer(t, func(conn net.Conn) {
				tell(conn, tt.says)
				// The other side waits for more bytes after its own.
				_, _ = conn.Read(make([]byte, len(null31)))
				cancel(stopped)
				hear(conn)
			})
			err := follow(ctx, dial(t, address), zmtp.Options{Timeout: never, Heartbeat: never})
			require.ErrorIs(t, err, stopped)
			var e *zmtp.Error
			require.ErrorAs(t, err, &e)
		})
	}
}

func TestAnEndedContextEndsEachCallImmediately(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	address := peer(t, hear)
	_, err := zmtp.Subscribe(ctx, dial(t, address), zmtp.Options{Timeout: never}, nil)
	require.ErrorIs(t, err, context.Canceled)

	s, err := zmtp.Subscribe(t.Context(), newScript(pub+"\x00\x01a", 0), zmtp.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Receive(ctx, nil), context.Canceled)
	require.Equal(t, "a", string(next(t, s)), "nothing was broken by a context that had ended before")
}

func TestReceiveFailsAfterTheContextEndedInsideAHandler(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := zmtp.Subscribe(t.Context(), newScript(pub+"\x00\x01a\x00\x01b", 0), zmtp.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Receive(ctx, func(zmtp.Message) error {
		cancel()
		return errEnough
	}), errEnough)
	require.ErrorIs(t, s.Receive(ctx, nil), context.Canceled, "the cause of this context stands before the earlier error")
	var broken *zmtp.BrokenError
	require.ErrorAs(t, s.Receive(t.Context(), nil), &broken)
}

func TestAContextEndsARequest(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	address := peer(t, func(conn net.Conn) {
		tell(conn, rep)
		b := make([]byte, len(null31+ready("REQ"))+len("\x01\x00\x00\x01a"))
		if _, err := io.ReadFull(conn, b); err == nil {
			cancel(stopped)
		}
		hear(conn)
	})
	r, err := zmtp.Request(t.Context(), dial(t, address), zmtp.Options{Timeout: never})
	require.NoError(t, err)
	_, err = r.Ask(ctx, []byte("a"))
	require.ErrorIs(t, err, stopped)
}

func TestAReplierThatAnswersOnlyPingsIsDisconnected(t *testing.T) {
	conn := newDialog(null31, ready("REP"), "", "\x04\x05\x04PONG\x04\x05\x04PONG")
	conn.then = os.ErrDeadlineExceeded
	r, err := zmtp.Request(t.Context(), conn, zmtp.Options{Timeout: never, Heartbeat: never})
	require.NoError(t, err)
	_, err = r.Ask(t.Context(), []byte("a"))
	require.ErrorContains(t, err, "traffic: ")
	require.ErrorIs(t, err, zmtp.ErrTimeout)
	_, err = r.Ask(t.Context(), []byte("a"))
	require.ErrorContains(t, err, "unusable after an earlier error")
}

// unread is a connection whose other side reads nothing after the opening: each later write fails
// immediately as at its deadline.
type unread struct {
	*script
	accepted int // bytes
}

func (u *unread) Write(b []byte) (int, error) {
	if u.accepted -= len(b); u.accepted < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return u.script.Write(b)
}

func TestAPeerThatReadsNothingIsDisconnected(t *testing.T) {
	opening := newScript(pub, 0)
	_, err := received(t, opening, zmtp.Options{})
	require.ErrorIs(t, err, zmtp.ErrClosed)
	conn := &unread{script: newScript(pub+pingNoLimit, 0), accepted: opening.told.Len()}
	err = follow(t.Context(), conn, zmtp.Options{Timeout: never, Heartbeat: never})
	require.ErrorContains(t, err, "expected the other side to accept data, got: time ran out")
}

func TestASilentPeerIsConnectedWhileItAnswersPing(t *testing.T) {
	const pings = 3
	address := peer(t, func(conn net.Conn) {
		tell(conn, pub)
		answered := 0
		buf := make([]byte, 1)
		seen := ""
		for answered < pings {
			if _, err := io.ReadFull(conn, buf); err != nil {
				return
			}
			if seen += string(buf); len(seen) >= len(pingNoLimit) && seen[len(seen)-len(pingNoLimit):] == pingNoLimit {
				answered++
				tell(conn, "\x04\x05\x04PONG")
			}
		}
		tell(conn, "\x00\x01a")
		hear(conn)
	})
	s, err := zmtp.Subscribe(t.Context(), dial(t, address), zmtp.Options{Timeout: patience, Heartbeat: soon}, nil)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, "a", string(next(t, s)))
}

func TestAPeerTimesOutAfterItsAnnouncedSilence(t *testing.T) {
	address := peer(t, func(conn net.Conn) { tell(conn, pub+"\x04\x07\x04PING\x00\x01"); hear(conn) })
	err := follow(t.Context(), dial(t, address), zmtp.Options{Timeout: never, Heartbeat: never})
	require.ErrorIs(t, err, zmtp.ErrTimeout)
}
