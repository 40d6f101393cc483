// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// toBackend configures an exporter without queue and retries: the backend's answer is the result of
// the pipeline.
func toBackend(endpoint string) string {
	return fmt.Sprintf(`otlp_http: {endpoint: %q, compression: none, timeout: 60s, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}`, endpoint)
}

// backend is a server with the test's answers, which holds the accepted traces.
type backend struct {
	t        testing.TB
	endpoint string

	mu      sync.Mutex
	answer  func() int
	streams streams
	asked   int
	refused int
}

func newBackend(t testing.TB, answer func() int) *backend {
	b := &backend{t: t, answer: answer, streams: streams{}}
	b.endpoint, _ = kit.ServeOTLP(t, kit.Accept{Traces: b.accept})
	return b
}

func (b *backend) accept(traces ptrace.Traces) int {
	b.mu.Lock()
	answer := b.answer
	b.asked++
	b.mu.Unlock()
	status := answer()
	b.mu.Lock()
	defer b.mu.Unlock()
	if status == http.StatusOK {
		b.streams.add(b.t, traces)
	} else {
		b.refused++
	}
	return status
}

func (b *backend) answerWith(answer func() int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// drain removes and returns the accepted streams.
func (b *backend) drain() streams {
	b.mu.Lock()
	defer b.mu.Unlock()
	drain := b.streams
	b.streams = streams{}
	return drain
}

func accept() int  { return http.StatusOK }
func refuse() int  { return http.StatusServiceUnavailable }
func condemn() int { return http.StatusBadRequest }

// start lets an agent run; the channel receives its result when it has ended.
func (a agent) start(ctx context.Context, t testing.TB) (*bytefrogagent.Agent, <-chan bytefrogagent.Result) {
	running := a.agent(t)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- running.Run(ctx) }()
	return running, results
}

// await waits for the result of an agent.
func await[T any](t testing.TB, results <-chan T) (result T) {
	t.Helper()
	select {
	case result = <-results:
	case <-time.After(testkit.Patience):
		t.Fatalf("expected a %T within %v", result, testkit.Patience)
	}
	return result
}

// awaitEvents waits until the agent has sent that many events.
func awaitEvents(t testing.TB, a *bytefrogagent.Agent, n uint64) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d events sent", n), func() (bool, string) {
		sent := a.Stats().Events
		return sent >= n, fmt.Sprint(sent)
	})
}

// awaitStandstill waits until the agent has sent something and sends no more.
func awaitStandstill(t testing.TB, a *bytefrogagent.Agent) {
	t.Helper()
	const still = 500 * time.Millisecond
	last, since := uint64(0), time.Now()
	testkit.Eventually(t, "the agent stands still", func() (bool, string) {
		sent := a.Stats().Events
		if sent != last || sent == 0 {
			last, since = sent, time.Now()
		}
		return time.Since(since) >= still, fmt.Sprintf("%d events sent", sent)
	})
}

// smallAgents sets so few buffers for agents that they soon wait if the collector does not read.
const smallAgents = "agent: {buffer_memory: 131072}"

// While the pipeline is slow, or refuses, the agent waits. Afterwards each event arrives once.
func TestAnAgentWaitsForASlowOrRefusingPipeline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// answer is the backend's answer until released is closed.
		answer func(released <-chan struct{}) int
	}{
		{"slow", func(released <-chan struct{}) int { <-released; return http.StatusOK }},
		{"refusing", func(<-chan struct{}) int { return http.StatusServiceUnavailable }},
		{"too busy", func(<-chan struct{}) int { return http.StatusTooManyRequests }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			released := make(chan struct{})
			b := newBackend(t, func() int { return test.answer(released) })
			endpoint := testkit.Address(t)
			c := kit.Start(t, pipeline(endpoint, smallAgents+", retry: {max_interval: 200ms}", "", toBackend(b.endpoint)))
			a, results := agent{endpoint: endpoint, capture: mavenBegin, dial: narrow(endpoint)}.start(t.Context(), t)
			awaitStandstill(t, a)
			require.Less(t, a.Stats().Events, uint64(mavenBeginEvents), "the agent waits")
			b.answerWith(accept)
			close(released)
			result := await(t, results)
			require.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
			assert.Positive(t, result.Stats.Waited, "the time that the traced program waited for a buffer")
			stopAfter(t, c, 1)
			checkEqual(t, reference.Spans(openCapture(t, mavenBegin), defaultRules), b.drain().only(t))
		})
	}
}

// A permanent error of the pipeline drops and counts its spans, and no others.
func TestAPermanentErrorDropsABatchAndTheAgentContinues(t *testing.T) {
	t.Parallel()
	b := newBackend(t, condemn)
	endpoint := testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "", "", toBackend(b.endpoint)))
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	c.AwaitMetric(t, 1, runsEnded)
	assert.EqualValues(t, 4_793, c.Metric(t, spansDropped, `reason="refused_for_good"`))
	assert.Empty(t, b.drain())

	b.answerWith(accept)
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	stopAfter(t, c, 2)
	checkEqual(t, reference.Spans(openCapture(t, "shop"), defaultRules), b.drain().only(t))
}

// With on_overload: suspend the agent is suspended while the pipeline refuses. The calls before and
// after are exported, with a break between them.
func TestOverloadCanSuspendTheAgent(t *testing.T) {
	t.Parallel()
	b := newBackend(t, refuse)
	endpoint := testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "on_overload: suspend, retry: {max_interval: 200ms}",
		"", toBackend(b.endpoint)))
	// The gate holds the agent up, because otherwise it would send everything before it is
	// suspended. With more connections, a gap on one could prevent that the others are refused.
	const enough = 4 << 20
	gate := newGate(endpoint, enough)
	a, results := agent{endpoint: endpoint, capture: "maven", dial: gate.dial, connections: 1}.start(t.Context(), t)
	c.AwaitMetric(t, 1, suspends)
	close(gate.open)
	testkit.Eventually(t, "a data break that answers suspend", func() (bool, string) {
		return a.Stats().Breaks > 0, fmt.Sprintf("%+v", a.Stats())
	})
	b.answerWith(accept)
	result := await(t, results)
	require.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
	c.AwaitMetric(t, 1, runsEnded)
	assert.Positive(t, c.Metric(t, stackBreaks, `cause="suspended"`))
	c.Stop(t)
	checkPart(t, reference.Spans(openCapture(t, "maven"), reference.Rules{End: "ended"}), b.drain().only(t))
}

// gate stands between an agent and its network. It holds each data connection up after so many bytes, and can
// disconnect the agent, as the end of a process does. On a busy machine one connection may be far behind the others:
// it still sends its first names and events.
type gate struct {
	endpoint string
	open     chan struct{}
	bytes    int64

	mu          sync.Mutex
	connections []net.Conn
}

func newGate(endpoint string, bytes int64) *gate {
	return &gate{endpoint: endpoint, open: make(chan struct{}), bytes: bytes}
}

func (g *gate) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", g.endpoint)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connections = append(g.connections, conn)
	if len(g.connections) == 1 { // the control connection
		return conn, nil
	}
	return &gatedConnection{Conn: conn, gate: g, left: g.bytes}, nil
}

// cut closes all connections, and the data that waits at the gate is lost.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range g.connections {
		_ = conn.Close() // the agent may have closed it
	}
	close(g.open)
}

type gatedConnection struct {
	net.Conn
	gate *gate
	left int64
}

func (c *gatedConnection) Write(b []byte) (int, error) {
	if c.left -= int64(len(b)); c.left < 0 {
		<-c.gate.open
	}
	return c.Conn.Write(b)
}

// checkPart checks spans of a call stream that may be incomplete. A call with entry and exit equals
// that of the reference. Its parent is right or, after a gap, not known.
func checkPart(t testing.TB, want *reference.Result, e *exported) {
	t.Helper()
	checkShape(t, e)
	checkCalls(t, want, e)
}

// checkCalls is checkPart where callers may be missing, too, because a process was killed.
func checkCalls(t testing.TB, want *reference.Result, e *exported) {
	t.Helper()
	c := newComparison(e)
	for i := range e.spans {
		got := &e.spans[i]
		s := want.Spans[got.sequence]
		switch {
		case s == nil:
			c.wrong.add("span %d, %s: no call begins there", got.sequence, got.function)
			continue
		case s.Function != got.text && !isNumbered(got) || int64(s.Thread) != got.thread:
			c.wrong.add("span %d: expected %s on thread %d, got %s on %d", got.sequence, s.Function, s.Thread, got.text, got.thread)
		}
		caller := got.parent
		if len(got.links) == 1 {
			caller = got.links[0].id
		}
		if parent := c.byID[caller]; parent != nil && parent.sequence != s.Parent {
			c.wrong.add("span %d, %s: expected parent %d, got %d", got.sequence, got.function, s.Parent, parent.sequence)
		}
		if !got.isTruncated && s.Truncated == "" && (s.Unwound != got.hasError || s.ErrorType != got.errorType) {
			c.wrong.add("span %d, %s: expected error %q, got %q", got.sequence, got.function, s.ErrorType, got.errorType)
		}
		// Times are milliseconds, made unequal by counting up nanoseconds.
		const millisecond = 1_000_000
		if length := s.End - s.Start; !got.isTruncated && max(got.end-got.start-length, length-got.end+got.start) > millisecond/10 {
			c.wrong.add("span %d, %s: expected %d ns, got %d", got.sequence, got.function, length, got.end-got.start)
		}
	}
	c.wrong.report(t, "spans of a part of the run are wrong")
}

// isNumbered: the agent was gone before it had sent the method's name.
func isNumbered(s *span) bool {
	return s.text == "" && strings.HasPrefix(s.function, "unknown.method#")
}

// An agent that is killed ends its own run, and no other. All events that arrived are exported.
func TestAKilledAgentLosesOnlyItsUnsentEvents(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c := kit.Start(t, collector(endpoint, smallAgents, "reorder: {max_wait: 2s}"))
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	const aQuarter = 700 << 10 // on each of two connections
	gate := newGate(endpoint, aQuarter)
	a, results := agent{endpoint: endpoint, capture: mavenBegin, dial: gate.dial}.start(ctx, t)
	awaitStandstill(t, a)
	gate.cut()
	kill()
	// It notices by chance first that it is killed, or that headquarters is gone.
	assert.NotEqual(t, bytefrogagent.Completed, await(t, results).Outcome)
	c.AwaitMetric(t, 1, runsEnded, `cause="disconnected"`)
	assert.Equal(t, c.Metric(t, eventsReceived), c.Metric(t, eventsTaken), "all received events were paired")
	testkit.Eventually(t, "no open call", func() (bool, string) {
		open := c.Metric(t, openFrames)
		return open == 0, fmt.Sprint(open)
	})

	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	stopAfter(t, c, 2)
	got := readStreams(t, c, "spans.bin")
	require.Len(t, got, 2)
	maven := reference.Spans(openCapture(t, mavenBegin), reference.Rules{})
	shop := reference.Spans(openCapture(t, "shop"), defaultRules)
	for _, e := range got {
		if isShop(e) {
			checkEqual(t, shop, e)
			continue
		}
		checkPart(t, maven, e)
		assert.Greater(t, len(e.spans), 1000)
	}
}

// patientShutdown is a setting for tests of shutdowns that lose nothing. By default a collector drops the rest after
// 5 s, and a busy machine needs longer for the 12 MB that an agent has sent by then.
const patientShutdown = "shutdown_timeout: 1m"

// A collector that is shut down during a replay at full speed does not stop the traced program. It
// reads the data that the agent had sent by then, and exports exactly that. The next collector at
// the same address serves the next agent.
func TestShutdownUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sent uint64
		// isNarrow lets the agent send only a little before the collector reads it.
		isNarrow bool
	}{{1, false}, {50_000, true}, {200_000, true}} {
		t.Run(fmt.Sprintf("after %d events", test.sent), func(t *testing.T) {
			t.Parallel()
			endpoint := testkit.Address(t)
			configuration := collector(endpoint, patientShutdown, patientShutdown)
			c := kit.Start(t, configuration)
			one := agent{endpoint: endpoint, capture: "maven"}
			if test.isNarrow {
				one.dial = narrow(endpoint)
			}
			a, results := one.start(t.Context(), t)
			awaitEvents(t, a, test.sent)
			c.Terminate(t)
			result := await(t, results)
			c.Stop(t)
			got := readStreams(t, c, "spans.bin").only(t)
			checkEqual(t, sentBy(t, result, got), got)

			next := kit.Start(t, configuration)
			agent{endpoint: endpoint, capture: "shop"}.complete(t)
			stopAfter(t, next, 1)
			checkEqual(t, reference.Spans(openCapture(t, "shop"), defaultRules), readStreams(t, next, "spans.bin").only(t))
		})
	}
}

// A collector that reloads its configuration does the same, and continues.
func TestReloadUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c := kit.Start(t, collector(endpoint, patientShutdown, patientShutdown))
	a, results := agent{endpoint: endpoint, capture: "maven", dial: narrow(endpoint)}.start(t.Context(), t)
	awaitEvents(t, a, 1)
	c.Reload(t)
	result := await(t, results)
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	// Metrics begin again at 0 after the reload.
	stopAfter(t, c, 1)
	got := readStreams(t, c, "spans.bin")
	require.Len(t, got, 2)
	for _, e := range got {
		if isShop(e) {
			checkEqual(t, reference.Spans(openCapture(t, "shop"), defaultRules), e)
		} else {
			checkEqual(t, sentBy(t, result, e), e)
		}
	}
}

// sentBy is the part of Maven's capture that an agent had sent when it ended tracing, maybe early:
// everything below the number of its data break.
func sentBy(t testing.TB, result bytefrogagent.Result, e *exported) *reference.Result {
	t.Helper()
	require.NotEqual(t, bytefrogagent.Hung, result.Outcome, result.Reason)
	run, rules := openCapture(t, "maven"), defaultRules
	// An agent that has sent everything may meet either end first.
	isShutdown := slices.ContainsFunc(e.spans, func(s span) bool { return s.truncated == "shutdown" })
	if isShutdown || result.Outcome != bytefrogagent.Completed {
		rules.End = "shutdown"
	}
	// An agent that has sent everything ends by itself, without a suspend.
	if result.Outcome != bytefrogagent.Completed && result.Stats.Events < mavenEvents {
		require.Positive(t, result.Stats.Breaks, "suspend is answered")
		run = run.Before(uint32(result.Stats.Events))
	}
	return reference.Spans(run, rules)
}

func isShop(e *exported) bool { return strings.HasPrefix(e.spans[0].text, "demo/Shop") }

// busyMachine is the longest time in which an agent notices an event on a busy machine.
const busyMachine = time.Second

// A shutdown while the pipeline refuses does not hang the traced program either. Undelivered data
// is dropped in time.
func TestShutdownWhileThePipelineRefuses(t *testing.T) {
	t.Parallel()
	b := newBackend(t, refuse)
	endpoint := testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, smallAgents+", shutdown_timeout: 2s", "shutdown_timeout: 1s", toBackend(b.endpoint)))
	a, results := agent{endpoint: endpoint, capture: "maven", settle: busyMachine}.start(t.Context(), t)
	awaitStandstill(t, a)
	c.Terminate(t)
	result := await(t, results)
	require.NotEqual(t, bytefrogagent.Hung, result.Outcome, result.Reason)
	c.Stop(t)
	assert.Empty(t, b.drain())
}

// An agent whose process is stopped for too long loses the rest of its run, but its program
// continues.
func TestAnAgentThatIsStoppedForLongDoesNotHangItsProgram(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c := kit.Start(t, collector(endpoint, "agent: {heartbeat_interval: 100ms, buffer_memory: 131072}, missed_heartbeats: 10", ""))
	const aQuarter = 700 << 10 // on each of two connections
	gate := newGate(endpoint, aQuarter)
	a, results := agent{endpoint: endpoint, capture: mavenBegin, dial: gate.dial, settle: busyMachine}.start(t.Context(), t)
	awaitStandstill(t, a)
	a.Freeze()
	c.AwaitMetric(t, 1, runsEnded, `cause="unresponsive"`)
	c.AwaitMetric(t, 3, lingering)
	close(gate.open)
	a.Thaw()
	result := await(t, results)
	require.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	testkit.Eventually(t, "all connections are closed", func() (bool, string) {
		n := c.Metric(t, lingering)
		return n == 0, fmt.Sprint(n)
	})
	c.Stop(t)
	checkPart(t, reference.Spans(openCapture(t, mavenBegin), reference.Rules{}), readStreams(t, c, "spans.bin").only(t))
}

// An agent that is one too many runs its program untraced.
func TestAnAgentBeyondTheLimitDoesNotHangItsProgram(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c := kit.Start(t, collector(endpoint, "limits: {max_connections: 3}", ""))
	const aQuarter = 700 << 10 // on each of two connections
	gate := newGate(endpoint, aQuarter)
	a, results := agent{endpoint: endpoint, capture: mavenBegin, dial: gate.dial}.start(t.Context(), t)
	awaitStandstill(t, a)
	second := agent{endpoint: endpoint, capture: "shop"}.play(t.Context(), t)
	assert.Equal(t, bytefrogagent.Refused, second.Outcome, second.Reason)
	assert.Contains(t, second.Reason, "limits.max_connections is reached (3)")
	close(gate.open)
	result := await(t, results)
	assert.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
	stopAfter(t, c, 1)
}

func TestAPortInUseIsAClearError(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", testkit.Address(t))
	require.NoError(t, err)
	defer listener.Close()
	address := listener.Addr().String()
	log := kit.StartFails(t, pipeline(address, "", "", "nop: {}"))
	assert.Contains(t, log, "address already in use")
	assert.Contains(t, log, address)
	assert.Contains(t, log, "bytefrog")
}

// Connections that are opened and dropped leave no goroutines or files, with any first bytes.
func TestDroppedConnectionsAreFreed(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c := kit.Start(t, collector(endpoint, "", ""))
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	c.AwaitMetric(t, 1, runsEnded)
	files, goroutines := c.OpenFiles(t), c.Goroutines(t)

	words := [][]byte{
		nil,
		{0},           // half a hello
		{0, 1},        // hello: a run begins
		{0, 4},        // hello of a version that isn't spoken
		{30, 200},     // data hello of no run
		{16, 1, 0, 0}, // half a project hello
		[]byte("GET / HTTP/1.1\r\n\r\n"),
		{0, 1, 8, 'T', 0, 0, 9, 0, 0}, // hello, heartbeat, half a data break
	}
	const connections, atOnce = 2_000, 100
	for range connections / atOnce {
		var open []net.Conn
		for i := range atOnce {
			conn, err := net.Dial("tcp", endpoint)
			require.NoError(t, err)
			// An error means that the connection has been refused already.
			_, _ = conn.Write(words[i%len(words)])
			open = append(open, conn)
		}
		for _, conn := range open {
			_ = conn.Close()
		}
	}

	testkit.Eventually(t, fmt.Sprintf("at most %d open files", files+5), func() (bool, string) {
		n := c.OpenFiles(t)
		return n <= files+5, fmt.Sprint(n)
	})
	testkit.Eventually(t, fmt.Sprintf("at most %d goroutines", goroutines+5), func() (bool, string) {
		n := c.Goroutines(t)
		return n <= goroutines+5, fmt.Sprint(n)
	})
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	c.Stop(t)
}
