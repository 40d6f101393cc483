// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"context"
	"errors"
	"io"
	"net"
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

// tell writes what a peer says; whoever it is told may have gone.
func tell(conn net.Conn, what string) { _, _ = io.WriteString(conn, what) }

// hear reads until the other side says no more.
func hear(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// whereSilent are the places where a peer can fall silent, by what it says before.
var whereSilent = []struct {
	name, says string
	// idle: the silence is allowed, since no message has begun.
	idle bool
	err  string
}{
	{"at once", "", false, "greeting: byte 0: expected a ZMTP 3 greeting, got: time ran out"},
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

// whenLate repeats a try with longer and longer time-outs, until its error says what is
// expected: on a busy machine a short one runs out earlier than is meant.
func whenLate(t *testing.T, expected string, try func(timeout time.Duration) error) error {
	t.Helper()
	for timeout := soon; ; timeout *= 4 {
		err := try(timeout)
		if timeout > patience/4 || err == nil || strings.Contains(err.Error(), expected) {
			require.ErrorContains(t, err, expected)
			return err
		}
	}
}

func TestASilentPeerIsLeft(t *testing.T) {
	for _, tt := range whereSilent {
		t.Run(tt.name, func(t *testing.T) {
			err := whenLate(t, tt.err, func(timeout time.Duration) error {
				address := peer(t, func(conn net.Conn) { tell(conn, tt.says); hear(conn) })
				options := zmtp.Options{Timeout: timeout, Heartbeat: never}
				if tt.idle {
					options.Heartbeat = soon
				}
				return follow(t.Context(), dial(t, address), options)
			})
			require.ErrorIs(t, err, zmtp.ErrTimeout)
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
				// What waits for the rest is waiting when it has said what it can.
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

func TestAContextThatEndsWhileAMessageIsHandledLeavesNothingToReceive(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := zmtp.Subscribe(t.Context(), newScript(pub+"\x00\x01a\x00\x01b", 0), zmtp.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Receive(ctx, func(zmtp.Message) error {
		cancel()
		return errEnough
	}), errEnough)
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

func TestAReplierThatAnswersPingsButNoRequestsIsLeft(t *testing.T) {
	err := whenLate(t, "traffic: ", func(timeout time.Duration) error {
		address := peer(t, func(conn net.Conn) {
			tell(conn, rep)
			for {
				// Whatever it is told, it says only that it is there.
				if _, err := conn.Read(make([]byte, 1)); err != nil {
					return
				}
				tell(conn, "\x04\x05\x04PONG")
			}
		})
		r, err := zmtp.Request(t.Context(), dial(t, address), zmtp.Options{Timeout: timeout, Heartbeat: soon})
		if err != nil {
			return err
		}
		_, err = r.Ask(t.Context(), []byte("a"))
		_, again := r.Ask(t.Context(), []byte("a"))
		require.ErrorContains(t, again, "of no use since")
		return err
	})
	require.ErrorIs(t, err, zmtp.ErrTimeout)
}

func TestAPeerThatTakesNothingIsLeft(t *testing.T) {
	whenLate(t, "expected the other side to accept data, got: time ran out", func(timeout time.Duration) error {
		address := peer(t, func(conn net.Conn) {
			// It says PING for ever and reads no answer.
			tell(conn, pub)
			for {
				if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
					return
				}
				if _, err := io.WriteString(conn, pingNoLimit); err != nil {
					return
				}
			}
		})
		conn := dial(t, address).(*net.TCPConn)
		require.NoError(t, conn.SetWriteBuffer(1))
		return follow(t.Context(), conn, zmtp.Options{Timeout: timeout})
	})
}

func TestAPeerThatIsSilentForLongIsKeptWhileItAnswersPing(t *testing.T) {
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

func TestAPeerIsGoneAfterItsAnnouncedSilence(t *testing.T) {
	address := peer(t, func(conn net.Conn) { tell(conn, pub+"\x04\x07\x04PING\x00\x01"); hear(conn) })
	err := follow(t.Context(), dial(t, address), zmtp.Options{Timeout: never, Heartbeat: never})
	require.ErrorIs(t, err, zmtp.ErrTimeout)
}
