// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp/zmqtest"
)

// sizes are of messages on both sides of every bound: the short frame's, the buffer's,
// and of the largest that an Rbkit server was seen to send.
var sizes = []int{0, 1, 255, 256, 8192, 65_536, 262_144, 262_145, 1_000_000, 10_500_000}

// numbered returns a message with its own size and content.
func numbered(n, size int) []byte {
	m := bytes.Repeat([]byte{byte('a' + n)}, size)
	copy(m, fmt.Sprint(n))
	return m
}

// fromLibzmq subscribes to a publisher of libzmq that runs.
func fromLibzmq(t *testing.T, p *zmqtest.Peer, options zmtp.Options) *zmtp.Subscriber {
	t.Helper()
	s, err := zmtp.Subscribe(t.Context(), dial(t, p.Address()), options, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	require.Equal(t, zmqtest.Got([]byte{1}), p.Line("got"), "an XPUB socket reports its subscription")
	return s
}

func TestLibzmqPublishesToUs(t *testing.T) {
	for _, version30 := range []bool{false, true} {
		t.Run(fmt.Sprintf("version 3.0: %v", version30), func(t *testing.T) {
			p := zmqtest.Bind(t, "XPUB", "127.0.0.1:0", "hwm=0")
			s := fromLibzmq(t, p, zmtp.Options{Version30: version30})
			for n, size := range sizes {
				p.Send(numbered(n, size))
			}
			p.Send([]byte("a"), nil, []byte("b"))
			for n, size := range sizes {
				require.True(t, bytes.Equal(numbered(n, size), next(t, s)), "message %d, of %d bytes", n, size)
			}
			require.ErrorIs(t, s.Receive(t.Context(), func(m zmtp.Message) error {
				require.Equal(t, zmtp.Message{[]byte("a"), {}, []byte("b")}, m)
				return errEnough
			}), errEnough)
		})
	}
}

func TestLibzmqPublishesOnlySubscribedMessages(t *testing.T) {
	p := zmqtest.Bind(t, "XPUB", "127.0.0.1:0")
	s, err := zmtp.Subscribe(t.Context(), dial(t, p.Address()), zmtp.Options{}, []byte("b"))
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, zmqtest.Got([]byte("\x01b")), p.Line("got"))
	p.Send([]byte("a1"))
	p.Send([]byte("b1"))
	require.Equal(t, "b1", string(next(t, s)))
}

func TestLibzmqSubscribesToUs(t *testing.T) {
	for _, version30 := range []bool{false, true} {
		t.Run(fmt.Sprintf("version 3.0: %v", version30), func(t *testing.T) {
			p := zmtp.NewPublisher(zmtp.PublisherOptions{ServerOptions: zmtp.ServerOptions{Options: zmtp.Options{Version30: version30}}})
			address, _ := served(t, "127.0.0.1:0", p.Serve)
			s := zmqtest.Connect(t, "SUB", address, "subscribe=-", "hwm=0")
			eventually(t, "libzmq has subscribed", func() bool { return p.Subscriptions() == 1 })
			for n, size := range sizes {
				p.Send(numbered(n, size))
			}
			p.Send([]byte("a"), nil, []byte("b"))
			for n, size := range sizes {
				require.Equal(t, zmqtest.Got(numbered(n, size)), s.Line("got"))
			}
			require.Equal(t, zmqtest.Got([]byte("a"), nil, []byte("b")), s.Line("got"))
			s.Kill()
			eventually(t, "libzmq is gone", func() bool { return p.Subscriptions() == 0 })
		})
	}
}

func TestLibzmqAnswersUs(t *testing.T) {
	r := zmqtest.Bind(t, "REP", "127.0.0.1:0", "reply=yes")
	q, err := zmtp.Request(t.Context(), dial(t, r.Address()), zmtp.Options{})
	require.NoError(t, err)
	defer q.Close()
	for n, size := range sizes {
		request := numbered(n, size)
		reply, err := q.Ask(t.Context(), request, []byte("ab"))
		require.NoError(t, err)
		for i, j := 0, len(request)-1; i < j; i, j = i+1, j-1 {
			request[i], request[j] = request[j], request[i]
		}
		require.Equal(t, zmtp.Message{request, []byte("ba")}, reply)
	}
}

func TestAReplierAnswersRequestsOfLibzmq(t *testing.T) {
	r := zmtp.NewReplier(zmtp.ServerOptions{}, func(request zmtp.Message) [][]byte { return append(request, []byte("!")) })
	address, _ := served(t, "127.0.0.1:0", r.Serve)
	q := zmqtest.Connect(t, "REQ", address)
	for n := range 3 {
		q.Send([]byte{byte(n)}, []byte("x"))
		require.Equal(t, zmqtest.Got([]byte{byte(n)}, []byte("x"), []byte("!")), q.Line("got"))
	}
}

func TestPlainWithLibzmq(t *testing.T) {
	right := zmtp.Plain{Username: "name", Password: "secret"}
	t.Run("libzmq checks our password", func(t *testing.T) {
		p := zmqtest.Bind(t, "XPUB", "127.0.0.1:0", "user=name", "password=secret")
		s := fromLibzmq(t, p, zmtp.Options{Security: right})
		p.Send([]byte("a"))
		require.Equal(t, "a", string(next(t, s)))

		_, err := zmtp.Subscribe(t.Context(), dial(t, p.Address()), zmtp.Options{Security: zmtp.Plain{Username: "name", Password: "no"}}, nil)
		var refused *zmtp.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "400", refused.Reason)
		// libzmq resets the connection when it hears of another mechanism than its own.
		for range 20 {
			_, err = zmtp.Subscribe(t.Context(), dial(t, p.Address()), zmtp.Options{}, nil)
			require.ErrorContains(t, err, `greeting: byte 12: expected the mechanism NULL, got "PLAIN"`)
		}
	})
	t.Run("our server checks the password of libzmq", func(t *testing.T) {
		var ends reports
		p := zmtp.NewPublisher(zmtp.PublisherOptions{ServerOptions: zmtp.ServerOptions{Options: zmtp.Options{Security: right}, Report: ends.add}})
		address, _ := served(t, "127.0.0.1:0", p.Serve)
		s := zmqtest.Connect(t, "SUB", address, "subscribe=-", "user=name", "password=secret")
		eventually(t, "it knows the password", func() bool { return p.Subscriptions() == 1 })
		p.Send([]byte("a"))
		require.Equal(t, zmqtest.Got([]byte("a")), s.Line("got"))

		zmqtest.Connect(t, "SUB", address, "subscribe=-", "user=name", "password=no")
		eventually(t, "it doesn't", func() bool { return strings.Contains(ends.String(), "expected the right name and password") })
		require.Equal(t, 1, p.Subscriptions())
	})
}

func TestTheErrorNamesSwappedPortsOfLibzmq(t *testing.T) {
	p, r := zmqtest.Bind(t, "PUB", "127.0.0.1:0"), zmqtest.Bind(t, "REP", "127.0.0.1:0", "reply=yes")
	_, err := zmtp.Subscribe(t.Context(), dial(t, r.Address()), zmtp.Options{}, nil)
	require.ErrorContains(t, err, `expected a socket of type PUB or XPUB, got "REP"`)
	_, err = zmtp.Request(t.Context(), dial(t, p.Address()), zmtp.Options{})
	require.ErrorContains(t, err, `expected a socket of type REP or ROUTER, got "PUB"`)
}

func TestHeartbeatsWithLibzmq(t *testing.T) {
	t.Parallel()
	// A peer that is not answered within an interval disconnects, also if the machine stands still for so long.
	const interval = 2 * time.Second
	t.Run("libzmq sends PING, and our subscriber answers", func(t *testing.T) {
		t.Parallel()
		p := zmqtest.Bind(t, "XPUB", "127.0.0.1:0", fmt.Sprintf("heartbeat=%d", interval.Milliseconds()))
		s := fromLibzmq(t, p, zmtp.Options{Heartbeat: never})
		stayed(t, p, s, 5*interval/2)
	})
	t.Run("our subscriber sends PING, and libzmq answers", func(t *testing.T) {
		t.Parallel()
		p := zmqtest.Bind(t, "XPUB", "127.0.0.1:0")
		s := fromLibzmq(t, p, zmtp.Options{Heartbeat: interval})
		stayed(t, p, s, 5*interval/2)
	})
}

// stayed has a connection be silent for so long, and then used.
func stayed(t *testing.T, p *zmqtest.Peer, s *zmtp.Subscriber, silence time.Duration) {
	t.Helper()
	sent := make(chan struct{})
	timer := time.AfterFunc(silence, func() {
		defer close(sent)
		p.Send([]byte("a"))
	})
	defer func() {
		if !timer.Stop() {
			<-sent // the peer is the test's own until then
		}
	}()
	require.Equal(t, "a", string(next(t, s)))
}

// following has the calls of a Following.
type following struct {
	told chan string
	done chan error
}

// followed follows an address until the test ends.
func followed(t *testing.T, address string, options zmtp.Options) *following {
	f := &following{told: make(chan string, 1<<16), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		f.done <- zmtp.Following{
			Dial: func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", address)
			},
			Options:   options,
			Prefixes:  [][]byte{{}},
			Backoff:   backoff.Config{InitialInterval: time.Millisecond, MaxInterval: 100 * time.Millisecond},
			Connected: func(net.Addr) { f.told <- "connected" },
			Lost:      func(error, time.Duration) { f.told <- "lost" },
			Message: func(m zmtp.Message) error {
				f.told <- string(m[0])
				return nil
			},
		}.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-f.done, context.Canceled)
	})
	return f
}

// until waits for a word, and passes over "lost".
func (f *following) until(t *testing.T, word string) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case got := <-f.told:
			if got == "lost" && word != "lost" {
				continue
			}
			require.Equal(t, word, got)
			return
		case <-deadline:
			t.Fatalf("expected %q, got nothing for %v", word, patience)
		}
	}
}

func TestARestartOfLibzmqIsFollowed(t *testing.T) {
	p := zmqtest.Bind(t, "XPUB", "127.0.0.1:0")
	address := p.Address()
	f := followed(t, address, zmtp.Options{})
	for _, kill := range []bool{false, true, false} {
		f.until(t, "connected")
		p.Line("got")
		p.Send([]byte("a"))
		f.until(t, "a")
		if kill {
			p.Kill()
		} else {
			p.Stop()
		}
		f.until(t, "lost")
		f.until(t, "lost") // tries without a publisher
		p = zmqtest.Bind(t, "XPUB", address)
	}
	f.until(t, "connected")
}

// Messages published to a slow reader arrive, or the publisher drops whole messages.
func TestASlowReaderOfLibzmqGetsWholeMessages(t *testing.T) {
	const messages, size = 2000, 100_000
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("it keeps everything: %v", keeps), func(t *testing.T) {
			hwm := "hwm=10"
			if keeps {
				hwm = "hwm=0"
			}
			p := zmqtest.Bind(t, "XPUB", "127.0.0.1:0", hwm)
			s := fromLibzmq(t, p, zmtp.Options{})
			p.Tell("many %d %d", messages, size)
			p.Tell("pause") // is answered when all were sent
			p.Line("pause")
			got := numbersUntilEnd(t, p, s, size)
			require.IsIncreasing(t, got)
			if keeps {
				require.Len(t, got, messages)
			} else {
				require.Less(t, len(got), messages)
			}
		})
	}
}

// numbersUntilEnd receives messages of a size, which begin with their numbers, until a message of
// only 0xFF. The publisher repeats the last message until it arrives, because a full queue for a
// slow reader drops it.
func numbersUntilEnd(t *testing.T, p *zmqtest.Peer, s *zmtp.Subscriber, size int) []uint64 {
	t.Helper()
	var numbers []uint64
	done := make(chan error, 1)
	go func() {
		done <- s.Receive(t.Context(), func(m zmtp.Message) error {
			if string(m[0]) == "\xff" {
				return errEnough
			}
			if len(m) != 1 || len(m[0]) != size {
				return fmt.Errorf("expected a message of %d bytes, got %d in %d parts", size, len(m[0]), len(m))
			}
			numbers = append(numbers, binary.BigEndian.Uint64(m[0]))
			return nil
		})
	}()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); ; {
		select {
		case err := <-done:
			require.ErrorIs(t, err, errEnough)
			return numbers
		case <-again.C:
			p.Tell("send ff")
		case <-deadline:
			t.Fatalf("expected the end of %d messages, got nothing for %v", len(numbers), patience)
		}
	}
}

func TestASlowLibzmqLosesMessages(t *testing.T) {
	p := zmtp.NewPublisher(zmtp.PublisherOptions{QueueMessages: 10})
	address, _ := served(t, "127.0.0.1:0", p.Serve)
	s := zmqtest.Connect(t, "SUB", address, "subscribe=-", "hwm=10")
	s.Tell("pause")
	s.Line("pause")
	eventually(t, "libzmq has subscribed", func() bool { return p.Subscriptions() == 1 })
	sent := 0
	for ; p.Dropped() == 0; sent++ {
		p.Send(numbered(0, 100_000))
	}
	s.Tell("resume")
	s.Line("resume")
	for range sent - 1 {
		require.Equal(t, zmqtest.Got(numbered(0, 100_000)), s.Line("got"))
	}
}
