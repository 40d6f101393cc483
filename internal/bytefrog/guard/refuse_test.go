// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// soon lets a new agent wait only a moment for a collector. Agents show when they accept an error message.
func soon(g *Guard) {
	g.options.StartTimeout, g.timing.ready = 50*time.Millisecond, patience
}

func TestAnAgentWithoutACollectorRunsUntraced(t *testing.T) {
	t.Parallel()
	for name, collectors := range map[string]func(t *testing.T) []string{
		"there is none": func(t *testing.T) []string { return []string{testkit.Address(t), testkit.Address(t)} },
		"it has as many as it may": func(t *testing.T) []string {
			c := newCollector(t, testkit.Address(t), func(c *bytefrogreceiver.Config) { c.Limits.MaxRuns = 1 })
			other := bytefrogagent.New(bytefrogagent.Options{Endpoint: c.address}, &counting{slow: true})
			ended := make(chan struct{})
			go func() { defer close(ended); other.Run(t.Context()) }()
			t.Cleanup(func() { other.Stop(); <-ended })
			require.True(t, testkit.Happens(func() bool { return c.number() > 0 }))
			return []string{c.address}
		},
		"it says something else":      func(t *testing.T) []string { return []string{fake(t, []byte{77, 1, 2, 3})} },
		"it closes":                   func(t *testing.T) []string { return []string{fake(t, nil)} },
		"it says error":               func(t *testing.T) []string { return []string{fake(t, bytefrog.ErrorMessage{Text: "no"}.AppendTo(nil))} },
		"its configuration can't be":  func(t *testing.T) []string { return []string{fake(t, configuring(t, 1_000_000))} },
		"its configuration is no end": func(t *testing.T) []string { return []string{fake(t, []byte{1, 255, 255, 255, 255})} },
		"it closes without start":     func(t *testing.T) []string { return []string{fake(t, configuring(t, 2))} },
		"it never says start": func(t *testing.T) []string {
			return []string{fake(t, append(configuring(t, 2), bytes.Repeat([]byte{byte(bytefrog.TypeSuspend)}, 1000)...))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, collectors(t), soon)
			_, results := b.start(t.Context(), &counting{})
			result := ended(t, results)
			assert.Equal(t, bytefrogagent.Refused, result.Outcome, result.Reason)
			assert.EqualValues(t, 1, b.guard.counts.TurnedAway.Load())
		})
	}
}

func configuring(t *testing.T, connections int32) []byte {
	m, err := bytefrog.AgentConfiguration{
		RunID: 1, HeartbeatInterval: time.Second, BufferMemoryBudget: mib, QueueRetryCount: 1, DataConnections: connections,
	}.Message(1)
	require.NoError(t, err)
	return m.AppendTo(nil)
}

// fake runs a collector that answers each connection with some bytes, then closes it.
func fake(t *testing.T, answer []byte) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, 2))
			_, _ = conn.Write(answer)
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// If a collector misbehaves after start, the program runs on, and is suspended until another collector accepts it.
func TestACollectorThatMisbehavesIsLost(t *testing.T) {
	t.Parallel()
	start := bytefrog.Command{Of: bytefrog.TypeStart}.AppendTo(configuring(t, 2))
	for name, answer := range map[string][]byte{
		"it closes after start":       start,
		"it sends what can't be":      append(append([]byte(nil), start...), 200, 1),
		"it says error":               bytefrog.ErrorMessage{Text: "no"}.AppendTo(append([]byte(nil), start...)),
		"it suspends, pauses, closes": append(append([]byte(nil), start...), byte(bytefrog.TypeSuspend), byte(bytefrog.TypePause)),
		"it says configuration again": append(append([]byte(nil), start...), configuring(t, 2)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := testkit.Address(t)
			bad := fake(t, answer)
			b := newBed(t, []string{bad, address})
			p := &counting{slow: true}
			a, results := b.start(t.Context(), p)
			b.await("the agent's data connections", func() bool { return b.guard.counts.Bytes.Load() > 0 || p.hasBroken() })
			b.network.move(bad, testkit.Address(t)) // it goes
			good := newCollector(t, address)
			b.await("events at a good one", func() bool { return good.number() > 1000 })
			a.Stop()
			result := ended(t, results)
			assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
			b.await("the session's end", func() bool { return b.guard.State().Agents == 0 })
			good.stop()
			p.checkRuns(t, good.runs())
		})
	}
}

func (p *counting) hasBroken() bool { return len(p.sentBreaks()) > 0 }

func TestTheNextCollectorOfTheListIsTried(t *testing.T) {
	addresses := []string{testkit.Address(t), testkit.Address(t), testkit.Address(t)}
	b := newBed(t, addresses)
	p := &counting{slow: true}
	var a *bytefrogagent.Agent
	var results <-chan bytefrogagent.Result
	for _, i := range []int{2, 0, 1} {
		c := newCollector(t, addresses[i])
		if a == nil {
			a, results = b.start(t.Context(), p)
		}
		b.await("events", func() bool { return c.number() > 500 })
		if i != 1 {
			c.stop()
		}
	}
	a.Stop()
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.EqualValues(t, 3, b.guard.counts.Runs.Load())
}

func TestAfterGiveUpTheProgramContinuesUntraced(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.GiveUp, g.timing.steady = 50*time.Millisecond, time.Microsecond })
	_, results := b.start(t.Context(), &counting{slow: true})
	b.await("events", func() bool { return c.number() > 1000 })
	c.stop()
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.Contains(t, result.Reason, "could reach no collector")
	b.await("the session's end", func() bool { return b.guard.State().Agents == 0 })
}

func TestAnAgentBeyondMaxAgentsRunsUntraced(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.MaxAgents, g.timing.ready = 1, patience })
	first, results := b.start(t.Context(), &counting{slow: true})
	b.await("events", func() bool { return c.number() > 0 })
	_, others := b.start(t.Context(), &counting{})
	assert.Equal(t, bytefrogagent.Refused, ended(t, others).Outcome)
	first.Stop()
	assert.Equal(t, bytefrogagent.Untraced, ended(t, results).Outcome)
}

// Two collectors assign run 1, and the guard separates their agents.
func TestTheGuardSeparatesTwoAgentsWithTheSameRunID(t *testing.T) {
	first := newCollector(t, testkit.Address(t))
	second := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{first.address})
	programs := []*counting{{slow: true}, {slow: true}}
	a, results := b.start(t.Context(), programs[0])
	b.await("events", func() bool { return first.number() > 0 })
	b.network.move(first.address, second.address)
	other, others := b.start(t.Context(), programs[1])
	b.await("events", func() bool { return second.number() > 0 })
	a.Stop()
	other.Stop()
	assert.EqualValues(t, 1, ended(t, results).Configuration.RunID)
	assert.EqualValues(t, 2, ended(t, others).Configuration.RunID)
	first.awaitEnds(1)
	second.awaitEnds(1)
	assert.EqualValues(t, programs[0].next, len(first.only().events))
	assert.EqualValues(t, programs[1].next, len(second.only().events))
}

// A hostile peer loses only its own connection.
func TestHostileAgentsHarmNoOtherAgent(t *testing.T) {
	t.Parallel()
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.HandshakeTimeout = time.Second })
	p := &counting{slow: true}
	a, results := b.start(t.Context(), p)
	b.await("events", func() bool { return c.number() > 0 })
	hello := bytefrog.Hello{Version: 1}.AppendTo(nil)
	for name, sent := range map[string][]byte{
		"nothing":                 nil,
		"half a hello":            hello[:1],
		"another version":         {0, 9},
		"another protocol":        []byte("GET / HTTP/1.1\r\n\r\n"),
		"an unknown run":          {byte(bytefrog.TypeDataHello), 77},
		"a connection too many":   {byte(bytefrog.TypeDataHello), 1},
		"hello, and no heartbeat": append(hello[:2:2], 77, 77, 77),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", b.address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write(sent)
			require.NoError(t, err)
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			if name == "hello, and no heartbeat" {
				// It gets an error message, and has to close the connection itself.
				b.await("bad data", func() bool { return b.guard.counts.BadData.Load() == 1 })
				return
			}
			_, err = io.Copy(io.Discard, conn)
			require.NoError(t, err, "the connection is closed")
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		conn, err := net.Dial("tcp", b.address)
		require.NoError(t, err)
		noise := make([]byte, 1+random.IntN(100))
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		_, _ = conn.Write(append(hello[:2:2], noise...))
		_ = conn.Close()
	}
	before := c.number()
	b.await("events of the good one", func() bool { return c.number() > before+1000 })
	a.Stop()
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.Zero(t, p.hasBroken())
}

// Bad bytes on a data connection end the run on both sides. A peer that stays is disconnected.
func TestGarbageOnADataConnectionEndsTheRun(t *testing.T) {
	t.Parallel()
	c := newCollector(t, testkit.Address(t), func(c *bytefrogreceiver.Config) { c.NameWait = 100 * time.Millisecond })
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.linger = time.Second })
	a := b.byHand(t)
	data := a.data()
	_, err := data.Write(everything(0, 1))
	require.NoError(t, err)
	b.await("the readable data", func() bool { return c.number() == inEverything })
	_, err = data.Write([]byte{255, 255})
	require.NoError(t, err)
	m := a.hear()
	require.IsType(t, bytefrog.ErrorMessage{}, m)
	assert.Contains(t, m.(bytefrog.ErrorMessage).Text, "expected a message of a data connection")
	b.await("its place to be free", func() bool { return b.guard.State().Agents == 0 })
	c.awaitEnds(1)
	assert.Equal(t, inEverything, len(c.only().events), "the data before it")
}

// An agent that never finishes a message would keep its place forever.
func TestHalfAMessageOnTheControlConnectionEndsTheRun(t *testing.T) {
	t.Parallel()
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.rest, g.timing.orphan = time.Millisecond, 10*time.Millisecond })
	a := b.byHand(t)
	a.data()
	heartbeat := bytefrog.Heartbeat{Mode: bytefrog.ModeTracing}.AppendTo(nil)
	_, err := a.control.Write(append(heartbeat, heartbeat[:2]...))
	require.NoError(t, err)
	m := a.hear()
	require.IsType(t, bytefrog.ErrorMessage{}, m)
	assert.Contains(t, m.(bytefrog.ErrorMessage).Text, "expected the rest of heartbeat within 1ms, got nothing more")
	b.await("its place to be free", func() bool { return b.guard.State().Agents == 0 })
	c.awaitEnds(1)
}

func TestConnectionsToCollectorsCanUseTLS(t *testing.T) {
	// A server of net/http's tests has a certificate for 127.0.0.1.
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	behind := newCollector(t, testkit.Address(t))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: server.TLS.Certificates})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			plain, err := net.Dial("tcp", behind.address)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(plain, conn); _ = plain.(*net.TCPConn).CloseWrite() }()
			go func() { _, _ = io.Copy(conn, plain); _ = conn.Close() }()
		}
	}()
	defer func() { _ = listener.Close(); <-done }()
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, c := range map[string]struct {
		config *tls.Config
		want   bytefrogagent.Outcome
	}{
		"trusted":     {&tls.Config{RootCAs: trusted}, bytefrogagent.Completed},
		"not trusted": {&tls.Config{}, bytefrogagent.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.TLS = c.config
			b := newBed(t, []string{listener.Addr().String()}, func(g *Guard) {
				g.dial = o.dialer()
				if c.want == bytefrogagent.Refused {
					soon(g)
				}
			})
			_, results := b.start(t.Context(), &counting{until: 20_000})
			result := ended(t, results)
			assert.Equal(t, c.want, result.Outcome, result.Reason)
		})
	}
	behind.awaitEnds(1)
	assert.Equal(t, 20_000, len(behind.only().events))
}

func TestAnOptionOutOfItsBoundsIsNamed(t *testing.T) {
	for want, change := range map[string]func(o *Options){
		"collector is not set":      func(o *Options) { o.Collectors = nil },
		`collector is "x"`:          func(o *Options) { o.Collectors = []string{"x"} },
		"queue is 0":                func(o *Options) { o.Queue = 0 },
		"queue is 9000000":          func(o *Options) { o.Queue = 9_000_000 },
		"memory is 1":               func(o *Options) { o.Memory = 1 },
		"total-memory is 1":         func(o *Options) { o.TotalMemory = 1 },
		"total-memory is -1":        func(o *Options) { o.TotalMemory = -1 },
		"names-memory is":           func(o *Options) { o.NamesMemory = o.Memory },
		"max-wait is 0s":            func(o *Options) { o.MaxWait = 0 },
		"silence is 0s":             func(o *Options) { o.Silence = 0 },
		"give-up is -1s":            func(o *Options) { o.GiveUp = -time.Second },
		"retry-initial is 0s":       func(o *Options) { o.Retry.InitialInterval = 0 },
		"retry-max is 0s":           func(o *Options) { o.Retry.MaxInterval = 0 },
		"max-wait-per-second is 2s": func(o *Options) { o.MaxWaitPerSecond = 2 * time.Second },
		"max-agents is 256":         func(o *Options) { o.MaxAgents = 256 },
	} {
		o := DefaultOptions()
		o.Collectors = []string{"localhost:8765"}
		require.NoError(t, o.Validate())
		change(&o)
		_, err := New(o)
		assert.ErrorContains(t, err, want)
	}
}

// brokenPeer is a connection whose writes fail on demand.
type brokenPeer struct {
	net.Conn
	sending, broken chan struct{}
}

func (p *brokenPeer) Write([]byte) (int, error) {
	select {
	case p.sending <- struct{}{}:
	default:
	}
	<-p.broken
	return 0, net.ErrClosed
}

// A data connection for an agent that disconnects before its start would wait forever.
func TestADataConnectionOfAnAgentThatIsNotStartedIsRefused(t *testing.T) {
	c := watch(t, starting(t, 1))
	g := silentGuard(t, c.address)
	near, far := net.Pipe()
	defer far.Close()
	agent := &brokenPeer{Conn: near, sending: make(chan struct{}, 1), broken: make(chan struct{})}
	greeted := make(chan struct{})
	go func() {
		defer close(greeted)
		g.serveControl(newReader(agent, controlBytes), bytefrog.Hello{Version: 1}, g.slots.AdmitAlways(near))
	}()
	<-agent.sending // its configuration, so it has a run
	served := make(chan error, 1)
	s := g.lookup(1)
	go func() { served <- s.serve(near, nil, func() {}) }()
	close(agent.broken)
	<-greeted
	select {
	case err := <-served:
		assert.ErrorIs(t, err, errRunOver)
	case <-time.After(patience):
		require.Fail(t, "it waits forever, and so does the guard's end")
	}
}

// An agent that got the error message for bad data, and sends heartbeats, would keep its place.
func TestAnAgentThatSentBadDataLosesItsPlace(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	b.await("it to obey commands", func() bool { return s.agent.Status().State == hq.Tracing })
	before := time.Now()
	a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing})
	b.await("its message", func() bool { return s.lastHeard().After(before) })
	b.guard.timing.linger = 100 * time.Millisecond // it has all that an agent opens, however long that took
	write(t, data, []byte{255, 255})
	a.hears(bytefrog.TypeError)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		for err := error(nil); err == nil; {
			_, err = a.control.Write(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing}.AppendTo(nil))
		}
	}()
	b.await("its place to be free", func() bool { return b.guard.State().Agents == 0 })
	_ = a.control.Close()
	<-beating
}
