// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/testkit"
)

// reports are the reports of a server.
type reports struct {
	mu   sync.Mutex
	errs []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *reports) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.errs)
}

// served runs serve on an address until the test ends, or stop is called.
func served(t testing.TB, address string, serve func(context.Context, net.Listener) error) (at string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	require.True(t, testkit.Happens(is), what)
}

// subscribed is a subscriber of a publisher that knows of it.
func subscribed(t testing.TB, p *zmtp.Publisher, address string, options zmtp.Options, prefixes ...string) *zmtp.Subscriber {
	t.Helper()
	before := p.Subscriptions()
	var asked [][]byte
	for _, prefix := range prefixes {
		asked = append(asked, []byte(prefix))
	}
	s, err := zmtp.Subscribe(t.Context(), dial(t, address), options, asked...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	eventually(t, "the publisher knows of the subscription", func() bool { return p.Subscriptions() == before+len(prefixes) })
	return s
}

func TestSubscribersGetTheirMessages(t *testing.T) {
	for _, version30 := range []bool{false, true} {
		t.Run(fmt.Sprintf("version 3.0: %v", version30), func(t *testing.T) {
			p := zmtp.NewPublisher(zmtp.PublisherOptions{})
			address, _ := served(t, "127.0.0.1:0", p.Serve)
			options := zmtp.Options{Version30: version30}
			all, some := subscribed(t, p, address, options, ""), subscribed(t, p, address, options, "b", "ca")
			for _, m := range []string{"a", "b", "c", "bc", "cab"} {
				p.Send([]byte(m), []byte("!"))
			}
			for _, want := range []string{"a!", "b!", "c!", "bc!", "cab!"} {
				require.Equal(t, want, string(next(t, all)))
			}
			for _, want := range []string{"b!", "bc!", "cab!"} {
				require.Equal(t, want, string(next(t, some)))
			}
			require.Zero(t, p.Dropped())
		})
	}
}

// told returns a connection to a server, to which an opening of 3.1 and these bytes were written.
func told(t *testing.T, address, socket, what string) net.Conn {
	t.Helper()
	conn := dial(t, address)
	tell(conn, null31+ready(socket)+what)
	return conn
}

func TestSubscriptionsAreCountedAndTakenBack(t *testing.T) {
	const cancel = "\x04\x08\x06CANCELa"
	p := zmtp.NewPublisher(zmtp.PublisherOptions{})
	address, _ := served(t, "127.0.0.1:0", p.Serve)
	// Commands and messages, which a PUB socket both accepts, undo each other.
	conn := told(t, address, "SUB", "\x04\x0b\x09SUBSCRIBEa"+"\x00\x02\x01a")
	eventually(t, "subscribed", func() bool { return p.Subscriptions() == 2 })
	tell(conn, cancel+pingNoLimit)
	_, err := io.ReadFull(conn, make([]byte, len(null31+ready("PUB")+"\x04\x05\x04PONG")))
	require.NoError(t, err)
	require.Equal(t, 1, p.Subscriptions(), "one of two was cancelled")
	tell(conn, "\x00\x02\x00a"+cancel)
	eventually(t, "the cancelled subscription", func() bool { return p.Subscriptions() == 0 })
}

func TestAWrongSubscriberLosesOnlyItsOwnConnection(t *testing.T) {
	var many bytes.Buffer
	for n := range 4097 {
		fmt.Fprintf(&many, "\x04\x0e\x09SUBSCRIBE%04x", n)
	}
	longSubscription := func(to string) string { return long(0, "\x01"+strings.Repeat(to, 600<<10)) }
	for _, tt := range []struct{ name, says, err string }{
		{"a message that is no subscription", "\x00\x01a", `expected a message of one part that begins with 0 or 1, a subscription, got "a"`},
		{"an empty message", "\x00\x00", `a subscription, got ""`},
		{"a subscription of two parts", "\x01\x01\x01\x00\x00", "expected a message of one part"},
		{"a frame that is too large", "\x02\x40\x00\x00\x00\x00\x00\x00\x00", "expected a frame of at most"},
		{"subscriptions that are too long", longSubscription("a") + longSubscription("b"), "expected at most 4096 subscriptions of 1048576 bytes together, got more"},
		{"too many subscriptions", many.String(), "expected at most 4096 subscriptions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ends reports
			p := zmtp.NewPublisher(zmtp.PublisherOptions{ServerOptions: zmtp.ServerOptions{Report: ends.add}})
			address, _ := served(t, "127.0.0.1:0", p.Serve)
			good := subscribed(t, p, address, zmtp.Options{}, "")
			hear(told(t, address, "SUB", tt.says))
			eventually(t, tt.err, func() bool { return bytes.Contains([]byte(ends.String()), []byte(tt.err)) })
			p.Send([]byte("a"))
			require.Equal(t, "a", string(next(t, good)))
		})
	}
}

func TestASlowSubscriberLosesMessagesAndNoOtherWaits(t *testing.T) {
	p := zmtp.NewPublisher(zmtp.PublisherOptions{QueueMessages: 3})
	address, _ := served(t, "127.0.0.1:0", p.Serve)
	slow := subscribed(t, p, address, zmtp.Options{}, "")
	message := make([]byte, 1<<20)
	sent := 0
	for ; p.Dropped() == 0; sent++ {
		message[0] = byte(sent)
		p.Send(message)
	}
	for n := range sent - 1 {
		require.Equal(t, byte(n), next(t, slow)[0], "those before are there, in order")
	}
	require.EqualValues(t, 1, p.Dropped())
	p.Send([]byte("later"))
	require.Equal(t, "later", string(next(t, slow)))
}

func TestDrainWaitsUntilAllIsSent(t *testing.T) {
	p := zmtp.NewPublisher(zmtp.PublisherOptions{})
	address, stop := served(t, "127.0.0.1:0", p.Serve)
	s := subscribed(t, p, address, zmtp.Options{}, "")
	const messages, size = 100, 300_000
	got := make(chan int, 1)
	go func() {
		n := 0
		_ = s.Receive(context.Background(), func(m zmtp.Message) error {
			n++
			return nil
		})
		got <- n
	}()
	for range messages {
		p.Send(make([]byte, size))
	}
	require.NoError(t, p.Drain(t.Context()))
	stop()
	require.Equal(t, messages, <-got)

	// This subscriber reads nothing.
	address, _ = served(t, "127.0.0.1:0", p.Serve)
	subscribed(t, p, address, zmtp.Options{}, "")
	for p.Dropped() == 0 {
		p.Send(make([]byte, size))
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.ErrorIs(t, p.Drain(ctx), context.DeadlineExceeded)
}

func TestRepliersAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := zmtp.NewReplier(zmtp.ServerOptions{}, func(request zmtp.Message) [][]byte {
		if string(request[0]) == "silent" {
			cancel()
			return nil
		}
		return append([][]byte{[]byte("re")}, request...)
	})
	address, _ := served(t, "127.0.0.1:0", r.Serve)
	a, err := zmtp.Request(t.Context(), dial(t, address), zmtp.Options{})
	require.NoError(t, err)
	for n := range 3 {
		reply, err := a.Ask(t.Context(), []byte{byte(n)}, []byte("x"))
		require.NoError(t, err)
		require.Equal(t, zmtp.Message{[]byte("re"), {byte(n)}, []byte("x")}, reply)
	}
	b, err := zmtp.Request(t.Context(), dial(t, address), zmtp.Options{})
	require.NoError(t, err)
	_, err = b.Ask(ctx, []byte("silent"))
	require.ErrorIs(t, err, context.Canceled, "a request without a reply")
	reply, err := a.Ask(t.Context(), []byte("y"))
	require.NoError(t, err)
	require.Equal(t, zmtp.Message{[]byte("re"), []byte("y")}, reply)
}

func TestARepliersAnswerGoesBackByTheWayOfItsRequest(t *testing.T) {
	r := zmtp.NewReplier(zmtp.ServerOptions{}, func(request zmtp.Message) [][]byte { return request })
	address, _ := served(t, "127.0.0.1:0", r.Serve)
	conn := told(t, address, "DEALER", "\x01\x01x\x01\x02yz\x01\x00\x01\x01a\x00\x00")
	opening, reply := null31+ready("REP"), "\x01\x01x\x01\x02yz\x01\x00\x01\x01a\x00\x00"
	got := make([]byte, len(opening+reply))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, opening+reply, string(got))
}

func TestARequestThatIsNoneEndsItsConnection(t *testing.T) {
	for _, request := range []string{"\x00\x00", "\x00\x01a", "\x01\x01a\x00\x01b", "\x01\x01a\x00\x00"} {
		var ends reports
		r := zmtp.NewReplier(zmtp.ServerOptions{Report: ends.add}, func(request zmtp.Message) [][]byte { return request })
		address, _ := served(t, "127.0.0.1:0", r.Serve)
		hear(told(t, address, "REQ", request))
		eventually(t, "a report", func() bool {
			return bytes.Contains([]byte(ends.String()), []byte("expected a request: an empty part, and at least one other behind it"))
		})
	}
}

func TestPlainAcceptsClientsWithThePassword(t *testing.T) {
	right := zmtp.Plain{Username: "name", Password: "secret"}
	var ends reports
	p := zmtp.NewPublisher(zmtp.PublisherOptions{ServerOptions: zmtp.ServerOptions{Options: zmtp.Options{Security: right}, Report: ends.add}})
	address, _ := served(t, "127.0.0.1:0", p.Serve)
	s := subscribed(t, p, address, zmtp.Options{Security: right}, "")
	p.Send([]byte("a"))
	require.Equal(t, "a", string(next(t, s)))

	for _, wrong := range []zmtp.Plain{{Username: "name", Password: "Secret"}, {Username: "names", Password: "ecret"}, {}} {
		_, err := zmtp.Subscribe(t.Context(), dial(t, address), zmtp.Options{Security: wrong}, nil)
		require.ErrorContains(t, err, `handshake: refused by the peer, with the reason "Invalid username or password"`)
	}
	_, err := zmtp.Request(t.Context(), dial(t, address), zmtp.Options{Security: right})
	require.ErrorContains(t, err, `handshake: refused by the peer, with the reason "Invalid socket type"`)
	_, err = zmtp.Subscribe(t.Context(), dial(t, address), zmtp.Options{}, nil)
	require.ErrorContains(t, err, `expected the mechanism NULL, got "PLAIN"`)
	require.NotContains(t, ends.String(), "ecret", "passwords are in no error")
}

func TestAServerHasSoManyConnections(t *testing.T) {
	var ends reports
	p := zmtp.NewPublisher(zmtp.PublisherOptions{ServerOptions: zmtp.ServerOptions{Connections: 1, Report: ends.add}})
	address, _ := served(t, "127.0.0.1:0", p.Serve)
	first := subscribed(t, p, address, zmtp.Options{}, "")
	_, err := zmtp.Subscribe(t.Context(), dial(t, address), zmtp.Options{}, nil)
	require.ErrorContains(t, err, "greeting")
	require.Contains(t, ends.String(), "expected at most 1 connections, got one more")
	require.NoError(t, first.Close())
	eventually(t, "there is room again", func() bool {
		s, err := zmtp.Subscribe(t.Context(), dial(t, address), zmtp.Options{}, nil)
		if err == nil {
			_ = s.Close()
		}
		return err == nil
	})
}

func TestServeReturnsAnErrorWhenItsListenerIsClosed(t *testing.T) {
	p := zmtp.NewPublisher(zmtp.PublisherOptions{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- p.Serve(t.Context(), l) }()
	subscribed(t, p, l.Addr().String(), zmtp.Options{}, "")
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
}

func TestAFollowingContinuesAfterRestarts(t *testing.T) {
	p := zmtp.NewPublisher(zmtp.PublisherOptions{})
	address, stop := served(t, testkit.Address(t), p.Serve)
	const restarts = 3
	var told []string
	lost := make(chan struct{}, 1000)
	following := zmtp.Following{
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		},
		Prefixes:  [][]byte{{}},
		Backoff:   backoff.Config{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond},
		Connected: func(net.Addr) { told = append(told, "connected") },
		Lost: func(error, time.Duration) {
			told = append(told, "lost")
			lost <- struct{}{}
		},
		Message: func(m zmtp.Message) error {
			told = append(told, string(m[0]))
			if string(m[0]) == fmt.Sprint(restarts) {
				return errEnough
			}
			return nil
		},
	}
	done := make(chan error, 1)
	go func() { done <- following.Run(t.Context()) }()
	for n := range restarts + 1 {
		eventually(t, "it is there", func() bool { return p.Subscriptions() == 1 })
		p.Send([]byte(fmt.Sprint(n)))
		require.NoError(t, p.Drain(t.Context()))
		if n == restarts {
			break
		}
		stop()
		<-lost
		<-lost // a try without a publisher
		_, stop = served(t, address, p.Serve)
	}
	require.ErrorIs(t, <-done, errEnough)
	var seen []string
	for _, what := range told {
		if what != "lost" {
			seen = append(seen, what)
		}
	}
	require.Equal(t, []string{"connected", "0", "connected", "1", "connected", "2", "connected", "3"}, seen)
}

func TestAFollowingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	following := zmtp.Following{
		Dial: func(ctx context.Context) (net.Conn, error) {
			cancel()
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
		Backoff: backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour},
		Lost:    func(error, time.Duration) { t.Error("expected the end, not another try") },
	}
	require.ErrorIs(t, following.Run(ctx), context.Canceled)
}

// The pauses grow for a peer that accepts every connection and ends it.
func TestAFollowingPausesLongerFromLossToLoss(t *testing.T) {
	const first = time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var longest time.Duration
	following := zmtp.Following{
		Dial:      func(context.Context) (net.Conn, error) { return newScript(pub, 0), nil },
		Backoff:   backoff.Config{InitialInterval: first, MaxInterval: time.Hour},
		Connected: func(net.Addr) {},
		Lost: func(_ error, pause time.Duration) {
			if longest = max(longest, pause); longest > 4*first {
				cancel()
			}
		},
	}
	require.Error(t, following.Run(ctx))
	require.Greater(t, longest, 4*first)
}

// lasting is a connection that is silent for a time, and is closed then.
type lasting struct {
	*script
	time time.Duration
}

func (l lasting) Read(b []byte) (int, error) {
	if l.says.Len() == 0 {
		<-time.After(l.time)
	}
	return l.script.Read(b)
}

func TestAFollowingPausesShortlyAfterAConnectionThatLasted(t *testing.T) {
	const first, most = time.Millisecond, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	long, lasted := false, time.Duration(-1)
	following := zmtp.Following{
		Dial: func(context.Context) (net.Conn, error) {
			if long {
				return lasting{newScript(pub, 0), 2 * most}, nil
			}
			return nil, io.ErrUnexpectedEOF
		},
		Backoff:   backoff.Config{InitialInterval: first, MaxInterval: most},
		Connected: func(net.Addr) {},
		Lost: func(_ error, pause time.Duration) {
			if long {
				lasted = pause
				cancel()
			}
			long = pause > 8*first
		},
	}
	require.Error(t, following.Run(ctx))
	require.GreaterOrEqual(t, lasted, time.Duration(0))
	require.Less(t, lasted, 2*first)
}

func TestAFollowingDialsForSoLong(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reason error
	following := zmtp.Following{
		Dial: func(within context.Context) (net.Conn, error) {
			<-within.Done() // a peer that accepts no connection
			return nil, context.Cause(within)
		},
		Options: zmtp.Options{Timeout: soon},
		Backoff: backoff.Config{InitialInterval: time.Millisecond, MaxInterval: time.Millisecond},
		Lost: func(err error, _ time.Duration) {
			reason = err
			cancel()
		},
	}
	time.AfterFunc(patience, cancel)
	require.Error(t, following.Run(ctx))
	require.ErrorIs(t, reason, zmtp.ErrTimeout)
}
