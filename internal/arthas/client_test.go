// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
)

func clientOf(t *testing.T, address string, settings arthas.Settings) *arthas.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := arthas.NewClient(&http.Client{Transport: transport}, address, settings)
	require.NoError(t, err)
	return c
}

// answering returns the address of a server that sends one text for the begin of a request, and closes the connection.
func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// greys returns the address of a Greys server.
func greys(t *testing.T) string {
	t.Helper()
	s, err := greysserver.New(greysserver.Options{Protocol: greysserver.Console, EndDelay: time.Millisecond})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-served)
	})
	return "http://" + listener.Addr().String()
}

func TestWhatAnswersInPlaceOfArthasIsNamed(t *testing.T) {
	stopped := httptest.NewServer(nil)
	stopped.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	defer page.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler("/login", http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"up"}`)
	}))
	defer empty.Close()
	for _, tt := range []struct {
		name, address string
		reason        error
	}{
		{"nothing", stopped.URL, arthas.ErrNotListening},
		{"a server that closes", answering(t, ""), arthas.ErrClosed},
		{"Arthas' telnet port", answering(t, "\xff\xfb\x01\xff\xfb\x03  ,---.  ,------. \r\n"), arthas.ErrTelnet},
		{"Greys' console", greys(t), arthas.ErrGreys},
		{"something else", answering(t, "SSH-2.0-OpenSSH_9.2\r\n"), arthas.ErrNotHTTP},
		{"another HTTP server", other.URL, arthas.ErrNotArthas},
		{"a page", page.URL, arthas.ErrNotArthas},
		{"a redirection", elsewhere.URL, arthas.ErrNotArthas},
		{"other JSON", empty.URL, arthas.ErrNotArthas},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := arthas.Settings{}
			if tt.reason == arthas.ErrGreys {
				settings.Doubt = time.Millisecond // its console may not answer a request with a whole line
			}
			_, err := clientOf(t, tt.address+"/?username=scott&password=tiger", settings).Identify(context.Background())
			require.ErrorIs(t, err, tt.reason)
			assert.NotContains(t, err.Error(), "tiger")
			u, _ := url.Parse(tt.address)
			assert.Contains(t, err.Error(), u.Host+": exec: ")
		})
	}
}

// A Greys server can answer before it has the whole request. Each attempt has another port, and the same error.
func TestTheErrorOfAGreysServerIsAlwaysTheSame(t *testing.T) {
	address := greys(t)
	var first error
	for range 50 {
		_, err := clientOf(t, address, arthas.Settings{Doubt: time.Millisecond}).Identify(context.Background())
		require.ErrorIs(t, err, arthas.ErrGreys)
		if first == nil {
			first = err
		}
		require.EqualError(t, err, first.Error())
	}
}

// The telnet port of Arthas says nothing about a request, and greets a client that waits.
func TestASilentServerIsLookedAtDuringTheRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				first := make([]byte, 1)
				if _, err := conn.Read(first); err == nil && first[0] != 'P' {
					_, _ = io.WriteString(conn, "\xff\xfb\x01")
				}
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	_, err = clientOf(t, "http://"+l.Addr().String(), arthas.Settings{Timeout: time.Hour, Doubt: time.Millisecond}).Identify(context.Background())
	require.ErrorIs(t, err, arthas.ErrTelnet)
}

func TestAddressesOfServers(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:8563", "ftp://127.0.0.1", "http://", "http://a b"} {
		_, err := arthas.NewClient(&http.Client{}, address, arthas.Settings{})
		assert.Error(t, err, address)
	}
	b := newBed(t)
	for _, suffix := range []string{"", "/", "/api", "/api/", "/api?x=1"} {
		version, err := clientOf(t, b.http.URL+suffix, arthas.Settings{}).Identify(context.Background())
		require.NoError(t, err, suffix)
		assert.Equal(t, "4.3.4", version)
	}
}

func TestVersionsThatHaveNoAPI(t *testing.T) {
	for version, supported := range map[string]bool{"3.3.9": false, "3.4.0": true, "3.7.2": true, "4.3.4": true, "10.0": true, "2.9.1": false, "unknown": true} {
		b := newBed(t, func(s *arthasserver.Settings, _ *arthas.Settings) { s.Version = version })
		_, err := b.client.Identify(context.Background())
		if supported {
			assert.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, arthas.ErrVersion)
		}
	}
}

func TestAPasswordIsAskedForOnce(t *testing.T) {
	b := newBed(t, func(s *arthasserver.Settings, _ *arthas.Settings) {
		s.Username, s.Password, s.LocalToo = "scott", "tiger", true
	})
	_, err := b.client.Identify(context.Background())
	require.ErrorIs(t, err, arthas.ErrUnauthorized)
	_, err = b.client.Open(context.Background())
	require.ErrorIs(t, err, arthas.ErrUnauthorized)

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	send := basic{transport, "scott", "tiger"}
	client, err := arthas.NewClient(&http.Client{Transport: &send}, b.http.URL, arthas.Settings{})
	require.NoError(t, err)
	_, err = client.Identify(context.Background())
	require.NoError(t, err)
	send.user = ""
	_, err = client.Identify(context.Background())
	require.NoError(t, err, "the client sends the cookie of the server")
	b.server.Restart()
	send.user, send.password = "scott", "wrong"
	_, err = client.Identify(context.Background())
	require.ErrorIs(t, err, arthas.ErrUnauthorized, "a new server does not know the cookie")
}

// basic sends a user and a password, if it has a user.
type basic struct {
	http.RoundTripper
	user, password string
}

func (b *basic) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.user != "" {
		r = r.Clone(r.Context())
		r.SetBasicAuth(b.user, b.password)
	}
	return b.RoundTripper.RoundTrip(r)
}

func TestAServerThatStopsIsNamed(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.MonitorCommand{Target: target(t, "demo.Shop", "buy"), Cycle: time.Hour})
	for queued := true; queued; {
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		queued = len(page.Results) == 0
	}
	response, err := http.Post(b.http.URL+"/api", "application/json", nil)
	require.NoError(t, err)
	response.Body.Close()
	stop(t, b)
	_, err = j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrClosed)
	b.http.Close()
	_, err = j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrNotListening)
	assert.EqualValues(t, 1, s.Loss().BrokenPages, "only the first pull reached the server")
}

// stop sends the command stop, which the client cannot send.
func stop(t *testing.T, b *bed) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, b.http.URL+"/api", strings.NewReader(`{"action":"exec","command":"stop"}`))
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	_, err = transport.RoundTrip(request)
	require.Error(t, err, "Arthas closes the connection")
}

func TestFaultsOfAServerAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  arthasserver.Fault
		reason error
		text   string
	}{
		{"no answer", arthasserver.FaultClose, arthas.ErrClosed, "pull_results: the server closed the connection without an answer"},
		{"half an answer", arthasserver.FaultCut, arthas.ErrCut, "pull_results: the answer ended too early after "},
		{"an endless answer", arthasserver.FaultEndless, arthas.ErrTooLarge, "pull_results: the answer is larger than the limit of 65536 bytes"},
		{"a slow answer", arthasserver.FaultSlow, context.DeadlineExceeded, "of the answer: context deadline exceeded"},
		{"no JSON", arthasserver.FaultNotJSON, nil, `pull_results: at byte 0 of the answer: expected an answer of Arthas, received "\"body\":`},
		{"a page", arthasserver.FaultHTML, arthas.ErrNotArthas, `received content type "text/html"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, func(s *arthasserver.Settings, c *arthas.Settings) { c.MaxAnswer = 64 << 10 })
			s := b.open()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 1})
			b.server.Inject("pull_results", tt.fault)
			if tt.fault == arthasserver.FaultSlow {
				// The answer must have begun, also if the machine stands still for a moment.
				ctx, cancel = context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
			}
			_, err := j.Pull(ctx)
			require.Error(t, err)
			if tt.reason != nil {
				require.ErrorIs(t, err, tt.reason)
			}
			assert.Contains(t, err.Error(), tt.text)
			if tt.fault != arthasserver.FaultHTML {
				assert.EqualValues(t, 1, s.Loss().BrokenPages)
			}
			b.server.Call(buy(time.Nanosecond))
			results, end := b.untilEnd(j)
			assert.Equal(t, arthas.EndFinished, end.Reason, "the job goes on")
			assert.Len(t, of[*arthas.Watch](results), 1)
		})
	}
}

func TestWrongTypesAreOfOneResultOnly(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.TraceCommand{Target: target(t, "demo.Shop", "buy"), Limit: 2})
	b.server.Call(buy(time.Nanosecond))
	b.server.Inject("pull_results", arthasserver.FaultWrongType)
	page, err := j.Pull(context.Background())
	require.NoError(t, err)
	bad := of[*arthas.Malformed](page.Results)
	require.Len(t, bad, 2)
	assert.Equal(t, "enhancer", bad[0].Type)
	assert.ErrorContains(t, bad[0].Err, `expected a duration in milliseconds, received "{\"not\":\"a number\"}`)
	assert.Equal(t, "trace", bad[1].Type)
	assert.EqualValues(t, 2, b.client.Stats().Malformed)
	b.server.Call(buy(time.Nanosecond))
	_, end := b.untilEnd(j)
	assert.Equal(t, arthas.EndFinished, end.Reason)
	assert.Zero(t, s.Loss().Results, "a malformed result is not a lost one")
}

func TestAStartInDoubtMakesTheSessionUseless(t *testing.T) {
	b := newBed(t)
	s := b.open()
	b.server.Inject("async_exec", arthasserver.FaultClose)
	_, err := s.Start(context.Background(), arthas.VersionCommand{})
	require.ErrorIs(t, err, arthas.ErrClosed)
	_, err = s.Start(context.Background(), arthas.VersionCommand{})
	require.ErrorIs(t, err, arthas.ErrClosed)
	require.NoError(t, s.Close(context.Background()))
	_, jobs := b.server.Sessions()
	assert.Zero(t, jobs)
}

func TestAnExecReturnsAllResultsAndTellsIfSomeAreMissing(t *testing.T) {
	b := newBed(t)
	e, err := b.client.Exec(context.Background(), arthas.MemoryCommand{}, time.Second)
	require.NoError(t, err)
	memory := of[*arthas.Memory](e.Results)[0]
	assert.Equal(t, arthas.MemoryPool{Kind: "buffer_pool", Name: "direct", Used: 33562632, Committed: 33562631}, memory.Pools[0])
	assert.False(t, e.Incomplete || e.TimedOut)

	e, err = b.client.Exec(context.Background(), arthas.MonitorCommand{Target: target(t, "demo.Shop", "buy"), Cycle: time.Second}, time.Millisecond)
	require.NoError(t, err)
	assert.True(t, e.TimedOut)
	assert.False(t, e.Incomplete)

	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, jobs := b.server.Sessions(); jobs > 0 {
				break
			}
		}
		for range 600 {
			b.server.Call(buy(time.Nanosecond))
		}
	}()
	e, err = b.client.Exec(context.Background(), arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 600}, time.Minute)
	<-done
	require.NoError(t, err)
	assert.True(t, e.Incomplete, "the server has room for 500 results, and dropped the status")
	assert.Len(t, e.Results, 500)
}

func TestPullsOfAServerWaitForEachOther(t *testing.T) {
	b := newBed(t, func(s *arthasserver.Settings, _ *arthas.Settings) { s.Loops = 8 })
	var pulled []chan error
	for range 4 {
		j := b.start(b.open(), arthas.MonitorCommand{Target: target(t, "demo.Shop", "buy"), Cycle: time.Hour})
		done := make(chan error, 1)
		pulled = append(pulled, done)
		go func() {
			_, err := j.Pull(context.Background())
			if err == nil {
				_, err = j.Pull(context.Background())
			}
			done <- err
		}()
	}
	for _, done := range pulled {
		require.NoError(t, <-done)
	}
	_, most := b.server.Requests()
	assert.Equal(t, 1, most)
}

func TestAContextThatEndsBeforeAPullIsSentLosesNothing(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.VersionCommand{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 {
		_, err := j.Pull(ctx)
		require.ErrorIs(t, err, context.Canceled)
	}
	results, _ := b.untilEnd(j)
	assert.Len(t, results, 1)
}

func TestTheServersClockIsKnown(t *testing.T) {
	b := newBed(t)
	s := b.open()
	server := s.Server()
	assert.Equal(t, arthas.Server{ProcessID: 12058, Version: "4.3.4", MainClass: "demo.Shop", Offset: 5*time.Hour + 30*time.Minute, HasOffset: true}, server)
	j := b.start(s, arthas.TraceCommand{Target: target(t, "demo.Shop", "buy"), Limit: 1})
	before := time.Now()
	b.server.Call(buy(time.Nanosecond))
	results, _ := b.untilEnd(j)
	at := of[*arthas.Trace](results)[0].Time.In(time.FixedZone("", int(server.Offset.Seconds())))
	assert.WithinDuration(t, before, at, time.Minute)
}

func TestACallThatBeganBeforeItsClassWasInstrumentedHasNoDuration(t *testing.T) {
	b := newBed(t)
	s := b.open()
	for _, command := range []arthas.Command{
		arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 2},
		arthas.TraceCommand{Target: target(t, "demo.Shop", "buy"), Limit: 2},
		arthas.RecordCommand{Target: target(t, "demo.Shop", "buy"), Limit: 2},
	} {
		j := b.start(s, command)
		b.server.CallInFlight(buy(time.Nanosecond))
		b.server.Call(buy(time.Nanosecond))
		unbegun := int64(0)
		var costs []arthas.Cost
		for {
			page, err := j.Pull(context.Background())
			require.NoError(t, err)
			unbegun += page.Unbegun
			for _, r := range page.Results {
				switch r := r.(type) {
				case *arthas.Watch:
					costs = append(costs, r.Cost)
				case *arthas.Trace:
					costs = append(costs, r.Nodes[0].Total)
				case *arthas.Records:
					costs = append(costs, r.Calls[0].Cost)
				}
			}
			if page.End != nil {
				break
			}
		}
		assert.EqualValues(t, 1, unbegun)
		assert.Equal(t, []arthas.Cost{{}, {Duration: time.Nanosecond, Known: true}}, costs)
	}
}

// The memory of a page counts until the next pull, and that of other answers until they are read.
func TestTheMemoryOfAnswersIsCounted(t *testing.T) {
	var counted, most atomic.Int64
	server := arthasserver.New(arthasserver.Settings{Classes: map[string][]string{"demo.Shop": {"buy"}}, PullWait: time.Millisecond, Gather: time.Millisecond})
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	t.Cleanup(server.Close)
	full := errors.New("no room")
	var limit int64 = 1 << 30
	client := clientOf(t, listening.URL, arthas.Settings{Reserve: func(more int) error {
		now := counted.Add(int64(more))
		most.Store(max(most.Load(), now))
		if now > limit {
			return full
		}
		return nil
	}})
	_, err := client.Exec(t.Context(), arthas.JVMCommand{}, time.Second)
	require.NoError(t, err)
	assert.Zero(t, counted.Load())
	assert.Greater(t, most.Load(), int64(1000))
	session, err := client.Open(t.Context())
	require.NoError(t, err)
	assert.Positive(t, counted.Load())
	class, err := arthas.NewPattern("demo.*")
	require.NoError(t, err)
	job, err := session.Start(t.Context(), arthas.StackCommand{Target: arthas.Target{Target: javamethods.Target{Class: class, Method: class}}})
	require.NoError(t, err)
	limit = counted.Load()
	_, err = job.Pull(t.Context())
	require.ErrorIs(t, err, full)
	require.NoError(t, session.Close(t.Context()))
	session.Forget()
	assert.Zero(t, counted.Load())
}
