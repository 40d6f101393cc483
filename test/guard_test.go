// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/guard"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// A traced program and its spans behind a guard, while collectors end and start.

// startGuard runs a guard in front of a collector, and returns its address.
func startGuard(t testing.TB, collector string, change ...func(o *guard.Options)) (*guard.Guard, string) {
	t.Helper()
	o := guard.DefaultOptions()
	o.Collectors = []string{collector}
	// The test does not wait for the guard's long pauses: a killed collector starts again within 100 ms.
	o.Retry = backoff.Config{InitialInterval: 10 * time.Millisecond, MaxInterval: 100 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	g, err := guard.New(o)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		assert.NoError(t, g.Shutdown(ctx))
		assert.NoError(t, <-served)
	})
	return g, listener.Addr().String()
}

// littleMemory lets a guard suspend an agent after 4 MiB that the collector does not read. A program with brief pauses needs three
// seconds for the rest, so its answer is in time on a busy machine, too.
func littleMemory(o *guard.Options) { o.Memory, o.NamesMemory = 16<<20, 1<<20 }

// tidal is a program that calls down to its deepest call and returns from all, again and again, at
// full speed or with pauses. After each suspension it calls other functions, beginning at the top: calls that were
// open then never return.
type tidal struct {
	// pause is its pause after each buffer of calls. With full speed the time of all processors goes into calls that the
	// collector has received before a test changes anything.
	pause time.Duration

	mu sync.Mutex
	// begins are the numbers at which the functions changed.
	begins []uint32
	next   uint32
	// longest is its longest wait for a buffer, recently the longest since the last question.
	longest, recently time.Duration
	// waiting is how long it waited for buffers in all.
	waiting time.Duration
}

// briefPause is a pause with which a program still makes hundreds of thousands of calls in a second, and leaves
// processors to others.
const briefPause = 2 * time.Millisecond

// depth is how deep it calls.
const depth = 8

func tideName(epoch, k int) string { return "demo.Tide" + strconv.Itoa(epoch) + ".f" + strconv.Itoa(k) }

// tideOf is the inverse of tideName. There are millions of spans, so both do without fmt.
func tideOf(name string) (epoch, k int, ok bool) {
	numbers, isTide := strings.CutPrefix(name, "demo.Tide")
	of, in, hasFunction := strings.Cut(numbers, ".f")
	epoch, wrongEpoch := strconv.Atoi(of)
	k, wrongFunction := strconv.Atoi(in)
	return epoch, k, isTide && hasFunction && wrongEpoch == nil && wrongFunction == nil && epoch >= 0
}

func (p *tidal) Run(t *bytefrogagent.Tracer) error {
	p.begins = []uint32{0}
	for {
		err := p.fill(t)
		time.Sleep(p.pause)
		for errors.Is(err, bytefrogagent.ErrSuspended) {
			p.mu.Lock()
			p.begins = append(p.begins, p.next)
			p.mu.Unlock()
			t.Break(p.next)
			err = t.AwaitUnsuspend()
		}
		if err != nil {
			return err
		}
	}
}

// waited is the longest wait for a buffer since it was asked last.
func (p *tidal) waited() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := p.recently
	p.recently = 0
	return longest
}

// fill sends a buffer of calls.
func (p *tidal) fill(t *bytefrogagent.Tracer) error {
	asked := time.Now()
	b, err := t.Acquire()
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := time.Since(asked)
	p.longest, p.recently = max(p.longest, waited), max(p.recently, waited)
	p.waiting += waited
	if err != nil {
		return err
	}
	now := uint32(t.Elapsed().Milliseconds())
	epoch := len(p.begins) - 1
	if p.next == p.begins[epoch] {
		for k := range depth {
			b.Data = bytefrog.MapMethod{Method: uint32(epoch*depth + k), Signature: fmt.Sprintf("demo/Tide%d.f%d;1;()V", epoch, k)}.AppendTo(b.Data)
		}
		b.Data = bytefrog.MapThreadName{Name: "tide", Time: now}.AppendTo(b.Data)
	}
	for b.Room() > 2*bytefrog.MaxEventSize {
		e := bytefrog.Event{Type: bytefrog.TypeMethodEntry, Sequence: p.next, Time: now}
		k := int(p.next-p.begins[epoch]) % (2 * depth)
		if k >= depth {
			e.Type, k = bytefrog.TypeMethodExit, 2*depth-1-k
		}
		e.Method = uint32(epoch*depth + k)
		b.Data = bytefrog.AppendEvent(b.Data, e)
		b.Events++
		p.next++
	}
	t.Send(b)
	return t.Proceed()
}

// tides are the spans of a tidal's calls: by run, the number of whole spans of each of its epochs.
// Everything else is checked when a span arrives.
type tides struct {
	t        testing.TB
	endpoint string
	program  *tidal

	mu   sync.Mutex
	runs map[string]map[int]int
	// callers are the missing callers of spans that arrived: callees arrive first.
	callers map[pcommon.SpanID]string
	// wrong are spans of calls that did not happen.
	wrong differences
}

func newTides(t testing.TB, p *tidal) *tides {
	s := &tides{t: t, program: p, runs: map[string]map[int]int{}, callers: map[pcommon.SpanID]string{}}
	s.endpoint, _ = kit.ServeOTLP(t, kit.Accept{Traces: s.accept})
	return s
}

func (s *tides) accept(traces ptrace.Traces) int {
	for _, rs := range traces.ResourceSpans().All() {
		instance, _ := rs.Resource().Attributes().Get("service.instance.id")
		for _, ss := range rs.ScopeSpans().All() {
			for _, from := range ss.Spans().All() {
				s.see(instance.Str(), flatten(from))
			}
		}
	}
	return http.StatusOK
}

func (s *tides) see(run string, call span) {
	s.program.mu.Lock()
	begins := s.program.begins
	s.program.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[run] == nil {
		s.runs[run] = map[int]int{}
	}
	epoch, k, ok := tideOf(call.function)
	if !ok || epoch >= len(begins) {
		s.wrong.add("run %s: a span of %s", run, call.function)
		return
	}
	// The run began where one of the epochs up to this one did.
	fits := false
	for _, base := range begins[:epoch+1] {
		n := int64(base) + call.sequence - int64(begins[epoch])
		fits = fits || n >= 0 && n%(2*depth) == int64(k)
	}
	if !fits {
		s.wrong.add("run %s, span %d: no call of %s begins there", run, call.sequence, call.function)
	}
	if call.threadName != "tide" {
		s.wrong.add("run %s, span %d: thread %q", run, call.sequence, call.threadName)
	}
	if caller, known := s.callers[call.id]; known && caller != call.function {
		s.wrong.add("run %s, span %d, %s: calls what %s calls", run, call.sequence, call.function, caller)
	}
	delete(s.callers, call.id)
	if !call.parent.IsEmpty() {
		s.callers[call.parent] = tideName(epoch, k-1)
	}
	if !call.isTruncated {
		s.runs[run][epoch]++
	}
}

// whole is how many runs have whole spans.
func (s *tides) whole() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, epochs := range s.runs {
		if len(epochs) > 0 {
			n++
		}
	}
	return n
}

// check checks that no span is wrong, and logs the result.
func (s *tides) check(g *guard.Guard, result bytefrogagent.Result) {
	s.t.Helper()
	require.Equal(s.t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.Equal(s.t, "the program was ended early by its user", result.Reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong.report(s.t, "spans are wrong")
	c := g.Counts()
	s.t.Logf("%d events; the program waited %v at most; %d runs, %d losses, %d stalls, %d suspensions, %d breaks",
		result.Stats.Events, s.program.longest, c.Runs.Load(), c.Losses.Load(), c.Stalls.Load(), c.Suspensions.Load(), result.Stats.Breaks)
	assert.Equal(s.t, c.Suspensions.Load(), result.Stats.Breaks, "each interruption is one break")
}

// stop ends the program, and waits until the guard has passed on all of it.
func stop(t *testing.T, g *guard.Guard, a *bytefrogagent.Agent, results <-chan bytefrogagent.Result) bytefrogagent.Result {
	t.Helper()
	a.Stop()
	result := await(t, results)
	testkit.Eventually(t, "the agent's session ends", func() (bool, string) { return g.State().Agents == 0, fmt.Sprintf("%+v", g.State()) })
	return result
}

func startTidal(t testing.TB, address string, p *tidal) (*bytefrogagent.Agent, <-chan bytefrogagent.Result) {
	a := bytefrogagent.New(bytefrogagent.Options{Endpoint: address, Settle: time.Second}, p)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- a.Run(t.Context()) }()
	return a, results
}

// A collector that is killed again and again under full load doesn't hang the program, and the
// trace continues each time.
func TestBehindAGuardACollectorCanBeKilled(t *testing.T) {
	const kills = 10
	endpoint := testkit.Address(t)
	p := &tidal{}
	s := newTides(t, p)
	// Even on a busy machine no sequence number is given up.
	configuration := pipeline(endpoint, "", "reorder: {max_wait: 1m}, idle_timeout: 10m", toBackend(s.endpoint))
	c := kit.Start(t, configuration)
	g, address := startGuard(t, endpoint)
	a, results := startTidal(t, address, p)
	for i := range kills {
		testkit.Eventually(t, "spans of another run", func() (bool, string) { return s.whole() > i, fmt.Sprint(s.whole()) })
		c.Kill()
		c = kit.Start(t, configuration)
	}
	testkit.Eventually(t, "spans of the last run", func() (bool, string) { return s.whole() > kills, fmt.Sprint(s.whole()) })
	result := stop(t, g, a, results)
	c.AwaitMetric(t, 1, runsEnded)
	c.Stop(t)
	s.check(g, result)
	assert.EqualValues(t, kills+1, g.Counts().Runs.Load())
	whole, epoch := s.last()
	assert.Equal(t, p.wholeCallsSince(epoch), whole, "whole calls of the last run, which was not killed")
}

// A collector that is stopped, and continues, loses only the calls of the meantime, and its run
// continues too.
func TestBehindAGuardACollectorCanBeStopped(t *testing.T) {
	t.Parallel()
	const stops = 3
	endpoint := testkit.Address(t)
	p := &tidal{pause: briefPause}
	s := newTides(t, p)
	// Even on a busy machine no sequence number is given up.
	c := kit.Start(t, pipeline(endpoint, "", "reorder: {max_wait: 1m}, idle_timeout: 10m", toBackend(s.endpoint)))
	g, address := startGuard(t, endpoint, littleMemory)
	a, results := startTidal(t, address, p)
	testkit.Eventually(t, "spans", func() (bool, string) { return s.whole() == 1, "" })
	for range stops {
		before := p.waited()
		c.Freeze(t)
		// It may have been before: the collector is slower than the program.
		testkit.Eventually(t, "the agent is suspended", func() (bool, string) { return g.State().Stalled == 1, fmt.Sprintf("%+v", g.State()) })
		t.Logf("waits for a buffer: %v at most before the collector was stopped, %v until the agent was suspended", before, p.waited())
		c.Thaw(t)
		testkit.Eventually(t, "the agent goes on", func() (bool, string) { return g.State().Stalled == 0, fmt.Sprintf("%+v", g.State()) })
	}
	result := stop(t, g, a, results)
	c.AwaitMetric(t, 1, runsEnded)
	breaks := c.Metric(t, stackBreaks, `cause="suspended"`)
	c.Stop(t)
	s.check(g, result)
	// Two without an event between them are at the same place.
	assert.EqualValues(t, len(slices.Compact(slices.Clone(p.begins)))-1, breaks, "each interruption is one break")
	assert.EqualValues(t, 1, g.Counts().Runs.Load())
	assert.EqualValues(t, p.next, g.Counts().Passed.Load(), "every event was passed on")
	assert.Equal(t, p.wholeCalls(), s.only(), "whole calls")
}

// wholeCalls is how many calls of all epochs returned before their epoch ended.
func (p *tidal) wholeCalls() int { return p.wholeCallsSince(0) }

// wholeCallsSince is the same of those from an epoch on.
func (p *tidal) wholeCallsSince(epoch int) (whole int) {
	for i := epoch; i < len(p.begins); i++ {
		begin := p.begins[i]
		end := p.next
		if i+1 < len(p.begins) {
			end = p.begins[i+1]
		}
		n := int(end - begin)
		whole += n/(2*depth)*depth + max(0, n%(2*depth)-depth)
	}
	return whole
}

// last is how many spans of the last run are whole, and with which epoch it began.
func (s *tides) last() (whole, epoch int) {
	last := -1
	for _, epochs := range s.runs {
		if len(epochs) == 0 {
			continue
		}
		first, n := len(s.program.begins), 0
		for e, spans := range epochs {
			first, n = min(first, e), n+spans
		}
		if first > last {
			whole, last = n, first
		}
	}
	return whole, last
}

// only is how many spans of the only run are whole.
func (s *tides) only() (whole int) {
	require.Len(s.t, s.runs, 1)
	for _, epochs := range s.runs {
		for _, n := range epochs {
			whole += n
		}
	}
	return whole
}

// A collector that is restarted in order has accepted all calls before, and gets all calls after.
func TestBehindAGuardACollectorCanBeRestarted(t *testing.T) {
	t.Parallel()
	const restarts = 3
	endpoint := testkit.Address(t)
	p := &tidal{pause: briefPause}
	s := newTides(t, p)
	configuration := pipeline(endpoint, "", "", toBackend(s.endpoint))
	c := kit.Start(t, configuration)
	g, address := startGuard(t, endpoint)
	a, results := startTidal(t, address, p)
	for i := range restarts {
		testkit.Eventually(t, "spans of another run", func() (bool, string) { return s.whole() > i, fmt.Sprint(s.whole()) })
		c.Stop(t)
		c = kit.Start(t, configuration)
	}
	testkit.Eventually(t, "spans of the last run", func() (bool, string) { return s.whole() > restarts, fmt.Sprint(s.whole()) })
	result := stop(t, g, a, results)
	c.Stop(t)
	s.check(g, result)
	assert.Zero(t, g.Counts().LostBytes.Load())
}

// The guard as users have it: a program.
func TestTheGuardForwardsACaptureAndEndsInOrder(t *testing.T) {
	t.Parallel()
	endpoint, listen, metrics := testkit.Address(t), testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, collector(endpoint, "", ""))
	command := exec.CommandContext(t.Context(), kit.Guard(t), "--listen", listen, "--collector", endpoint, "--metrics", metrics)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	require.NoError(t, command.Start())
	agent{endpoint: listen, capture: "shop"}.complete(t)
	c.AwaitMetric(t, 1, runsEnded)
	response, err := http.Get("http://" + metrics + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Contains(t, string(text), "\nbytefrog_guard_events_passed_total 9628\n")
	assert.Contains(t, string(text), "\nbytefrog_guard_runs_total 1\n")

	// An agent that is connected when the guard ends lives.
	a, results := startTidal(t, listen, &tidal{pause: briefPause})
	awaitEvents(t, a, 100_000)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	result := await(t, results)
	assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.NoError(t, command.Wait(), "%s", &log)
	stopAfter(t, c, 2)
	streams := readStreams(t, c, "spans.bin")
	require.Len(t, streams, 2)
	for _, e := range streams {
		if isShop(e) {
			checkEqual(t, reference.Spans(openCapture(t, "shop"), defaultRules), e)
		}
	}
}
