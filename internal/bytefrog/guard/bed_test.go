// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lanenames"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// patience bounds the wait for a condition, on a busy machine too.
const patience = time.Minute

// bed is a guard, and the network between it and collectors.
type bed struct {
	t       testing.TB
	guard   *Guard
	address string
	network *network
}

type option func(g *Guard)

// newBed runs a guard for collectors, which may start later. It ends with the test.
func newBed(t testing.TB, collectors []string, change ...option) *bed {
	t.Helper()
	b := &bed{t: t, network: newNetwork(t)}
	o := DefaultOptions()
	o.Collectors, o.Dial = collectors, b.network.dial
	o.Retry = backoff.Config{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	o.MaxWaitPerSecond = time.Second // a busy machine is a slow collector
	o.Logger = zap.NewNop()
	if testing.Verbose() {
		o.Logger = zaptest.NewLogger(t)
	}
	g, err := New(o)
	require.NoError(t, err)
	b.guard = g
	for _, c := range change {
		c(g)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.address = listener.Addr().String()
	served := make(chan error, 1)
	announced := &announcedListener{TCPListener: listener.(*net.TCPListener), accepting: make(chan struct{})}
	go func() { served <- g.Serve(announced) }()
	<-announced.accepting
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		b.network.healAll()
		assert.NoError(t, g.Shutdown(ctx))
		assert.NoError(t, <-served)
	})
	return b
}

func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	require.True(b.t, testkit.Happens(condition), "waited for %s", what)
}

// network has the connections of guards to collectors.
type network struct {
	mu      sync.Mutex
	open    map[*wire]struct{}
	changed *sync.Cond
	// stuck: no write succeeds. stuckData: only writes on control connections succeed.
	stuck, stuckData bool
	full             *fullPipe
	// moved has the new address for an address.
	moved map[string]string
}

func newNetwork(t testing.TB) *network {
	n := &network{open: map[*wire]struct{}{}, moved: map[string]string{}, full: newFullPipe(t)}
	n.changed = sync.NewCond(&n.mu)
	return n
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	if to, moved := n.moved[address]; moved {
		address = to
	}
	n.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, network: n}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[w] = struct{}{}
	return w, nil
}

// cut resets all connections, as the end of a collector's machine does.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.open {
		_ = w.Conn.(*net.TCPConn).SetLinger(0)
		_ = w.Conn.Close()
	}
}

// move redirects an address to another.
func (n *network) move(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moved[from] = to
}

// stick stops all writes, or lets them continue.
func (n *network) stick(stuck bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stuck, n.stuckData = stuck, stuck
	n.changed.Broadcast()
}

// stickData stops writes on data connections, as for a stopped collector: its system has room for the few bytes on the
// control connection.
func (n *network) stickData() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stuckData = true
}

func (n *network) healAll() { n.stick(false) }

// wire is one connection.
type wire struct {
	net.Conn
	network *network
	closed  bool
	// control: hello was sent on it.
	control bool
}

func (w *wire) Write(b []byte) (int, error) {
	w.network.mu.Lock()
	w.control = w.control || len(b) == 2 && b[0] == byte(bytefrog.TypeHello)
	for w.network.isStuck(w) && !w.closed {
		w.network.changed.Wait()
	}
	w.network.mu.Unlock()
	return w.Conn.Write(b)
}

// SyscallConn makes writes without waiting pass the network too.
func (w *wire) SyscallConn() (syscall.RawConn, error) {
	raw, err := w.Conn.(*net.TCPConn).SyscallConn()
	return &rawWire{RawConn: raw, wire: w}, err
}

type rawWire struct {
	syscall.RawConn
	wire *wire
}

// Write finds no room while writes are stopped, and waits if f waits.
func (r *rawWire) Write(f func(fd uintptr) bool) error {
	n := r.wire.network
	n.mu.Lock()
	for n.isStuck(r.wire) && !r.wire.closed {
		if n.full.try(f) {
			n.mu.Unlock()
			return nil
		}
		n.changed.Wait()
	}
	n.mu.Unlock()
	return r.RawConn.Write(f)
}

// fullPipe is a pipe without room.
type fullPipe struct{ in, out *os.File }

func newFullPipe(t testing.TB) *fullPipe {
	out, in, err := os.Pipe()
	require.NoError(t, err)
	p := &fullPipe{in: in, out: out}
	t.Cleanup(func() { _ = in.Close(); _ = out.Close() })
	p.try(func(fd uintptr) bool {
		for err == nil {
			_, err = syscall.Write(int(fd), make([]byte, chunkBytes))
		}
		return true
	})
	require.ErrorIs(t, err, syscall.EAGAIN)
	return p
}

// try calls f with the pipe, and returns its result.
func (p *fullPipe) try(f func(fd uintptr) bool) (done bool) {
	raw, err := p.in.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { done = f(fd) })
	}
	return done || err != nil
}

// isStuck reports whether writes are stopped. The caller holds the lock.
func (n *network) isStuck(w *wire) bool { return n.stuck || n.stuckData && !w.control }

func (w *wire) Close() error {
	w.network.mu.Lock()
	defer w.network.mu.Unlock()
	w.closed = true
	delete(w.network.open, w)
	w.network.changed.Broadcast()
	return w.Conn.Close()
}

// collector is a receiver with the data that it delivers.
type collector struct {
	t        testing.TB
	address  string
	sink     *consumertest.TracesSink
	logs     *consumertest.LogsSink
	metrics  *consumertest.MetricsSink
	receiver receiver.Traces
	stopped  bool
}

// newCollector starts a collector at an address. It ends with the test.
func newCollector(t testing.TB, address string, change ...func(c *bytefrogreceiver.Config)) *collector {
	t.Helper()
	c := &collector{
		t: t, address: address,
		sink: new(consumertest.TracesSink), logs: new(consumertest.LogsSink), metrics: new(consumertest.MetricsSink),
	}
	factory := bytefrogreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*bytefrogreceiver.Config)
	config.Endpoint = address
	config.Agent.HeartbeatInterval = 50 * time.Millisecond
	config.MissedHeartbeats = 10_000 // no lost agents on a busy machine
	config.NameWait = 4 * time.Second
	config.ShutdownTimeout = patience // no dropped data on a busy machine
	for _, f := range change {
		f(config)
	}
	settings := receivertest.NewNopSettings(factory.Type())
	r, err := factory.CreateTraces(context.Background(), settings, config, c.sink)
	require.NoError(t, err)
	_, err = factory.CreateLogs(context.Background(), settings, config, c.logs)
	require.NoError(t, err)
	_, err = factory.CreateMetrics(context.Background(), settings, config, c.metrics)
	require.NoError(t, err)
	require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
	c.receiver = r
	t.Cleanup(c.stop)
	return c
}

// awaitEnds waits until so many runs have ended and their data has arrived. An end is in a batch without events.
func (c *collector) awaitEnds(n int) {
	c.t.Helper()
	require.True(c.t, testkit.Happens(func() bool {
		ended := map[callevent.StreamID]bool{}
		for _, traces := range c.sink.AllTraces() {
			span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			if events, _ := span.Attributes().Get(callevent.AttributeEvents); events.Int() > 0 {
				continue
			}
			batch := unpack(c.t, span)
			for _, barrier := range batch.Barriers {
				ended[batch.Stream] = ended[batch.Stream] || barrier.Kind == callevent.BarrierEnd
			}
		}
		count := 0
		for _, e := range ended {
			if e {
				count++
			}
		}
		return count >= n
	}), "waited for the end of %d runs", n)
}

func unpack(t testing.TB, span ptrace.Span) callevent.Batch {
	data, err := callevent.Data(span)
	require.NoError(t, err)
	var batch callevent.Batch
	require.NoError(t, batch.Unpack(data))
	return batch
}

func (c *collector) stop() {
	if !c.stopped {
		c.stopped = true
		assert.NoError(c.t, c.receiver.Shutdown(context.Background()))
	}
}

// event is a call event with its names.
type event struct {
	kind                        callevent.Kind
	function, thread, exception string
	lane                        uint64
	line                        uint32
}

// run is the data of one run at a collector.
type run struct {
	events map[uint64]event
	times  map[uint64]int64
	// breaks have their number and cause.
	breaks  map[callevent.Barrier]bool
	renames []callevent.Rename
	ended   bool
}

// runs returns the complete and incomplete runs of a collector.
func (c *collector) runs() map[callevent.StreamID]*run {
	c.t.Helper()
	runs := map[callevent.StreamID]*run{}
	for _, traces := range c.sink.AllTraces() {
		batch := unpack(c.t, traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0))
		r := runs[batch.Stream]
		if r == nil {
			r = &run{events: map[uint64]event{}, times: map[uint64]int64{}, breaks: map[callevent.Barrier]bool{}}
			runs[batch.Stream] = r
		}
		r.add(c.t, &batch)
	}
	for _, r := range runs {
		r.nameThreads()
	}
	return runs
}

// nameThreads gives each event the name that its thread had.
func (r *run) nameThreads() {
	sorted := lanenames.Sorted(r.renames)
	for sequence, e := range r.events {
		e.thread = lanenames.At(sorted, e.lane, r.times[sequence], e.thread)
		r.events[sequence] = e
	}
}

func (r *run) add(t testing.TB, batch *callevent.Batch) {
	for _, b := range batch.Barriers {
		if b.Kind == callevent.BarrierEnd {
			r.ended = true
			continue
		}
		r.breaks[b] = true
	}
	r.renames = append(r.renames, batch.Renames...)
	events := make([]callevent.Event, batch.Len())
	batch.Events(events, 0)
	for _, e := range events {
		seen := event{kind: e.Kind}
		if e.Kind != callevent.KindSkip {
			seen.function, seen.line = batch.Functions[e.Function].Qualified, e.Line
			seen.lane, seen.thread = batch.Lanes[e.Lane].ID, batch.Lanes[e.Lane].Name
			if e.Exception > 0 {
				seen.exception = batch.Exceptions[e.Exception-1]
			}
		}
		if _, twice := r.events[e.Sequence]; twice {
			assert.Fail(t, "an event came twice", "%d", e.Sequence)
		}
		r.events[e.Sequence], r.times[e.Sequence] = seen, e.Time
	}
}

// seen returns the number of events of each run at a collector.
func (c *collector) seen() map[pcommon.TraceID]int {
	seen := map[pcommon.TraceID]int{}
	for _, traces := range c.sink.AllTraces() {
		span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		if n, ok := span.Attributes().Get(callevent.AttributeEvents); ok {
			seen[span.TraceID()] += int(n.Int())
		}
	}
	return seen
}

// number returns the number of events at a collector.
func (c *collector) number() (n int) {
	for _, events := range c.seen() {
		n += events
	}
	return n
}

// only returns the only run of a collector.
func (c *collector) only() *run {
	c.t.Helper()
	return onlyRun(c.t, c.runs())
}

func onlyRun(t testing.TB, runs map[callevent.StreamID]*run) *run {
	t.Helper()
	require.Len(t, runs, 1)
	for _, r := range runs {
		return r
	}
	return nil
}

// counting is a program whose events show their number, by method and line.
type counting struct {
	mu   sync.Mutex
	next uint32
	// breaks are the numbers of its data breaks.
	breaks []uint32
	// until, if not 0, ends the program at that number. With slow it sends half-full buffers, and waits between them.
	until uint32
	slow  bool
	named bool
	// longest is the longest wait for a buffer.
	longest time.Duration
}

const methods = 997 // a prime: method and line together are unique for 32 million events

// methodNames are the names of the methods.
var methodNames = func() (names [methods]string) {
	for i := range names {
		names[i] = fmt.Sprintf("demo.M.m%d", i)
	}
	return names
}()

func (p *counting) event() bytefrog.Event {
	n := p.next
	return bytefrog.Event{Type: bytefrog.TypeMethodExit, Sequence: n, Method: n % methods, Line: uint16(n & 0x7fff)}
}

// check returns an error if an event of a run that began at base is not the program's.
func (p *counting) check(base, number uint64, e event) error {
	n := base + number
	want := event{
		kind: callevent.KindExit, function: methodNames[n%methods], thread: "main", line: uint32(n & 0x7fff),
	}
	if e != want {
		return fmt.Errorf("number %d of the run from %d: expected %+v, got %+v", number, base, want, e)
	}
	return nil
}

func (p *counting) Run(t *bytefrogagent.Tracer) error {
	for p.until == 0 || p.next < p.until {
		err := p.fill(t)
		for errors.Is(err, bytefrogagent.ErrSuspended) {
			p.mu.Lock()
			p.breaks = append(p.breaks, p.next)
			p.mu.Unlock()
			t.Break(p.next)
			err = t.AwaitUnsuspend()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sentBreaks returns its breaks.
func (p *counting) sentBreaks() []uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.breaks)
}

// fill sends a buffer of events.
func (p *counting) fill(t *bytefrogagent.Tracer) error {
	begin := time.Now()
	buffer, err := t.Acquire()
	p.mu.Lock()
	p.longest = max(p.longest, time.Since(begin))
	p.mu.Unlock()
	if err != nil {
		return err
	}
	if !p.named {
		p.named = true
		for m := range uint32(methods) {
			buffer.Data = bytefrog.MapMethod{Method: m, Signature: fmt.Sprintf("demo/M.m%d;1;()V", m)}.AppendTo(buffer.Data)
		}
		buffer.Data = bytefrog.MapThreadName{Name: "main", Time: uint32(t.Elapsed().Milliseconds())}.AppendTo(buffer.Data)
		t.Send(buffer)
		return t.Proceed()
	}
	room := 2 * bytefrog.MaxEventSize
	if p.slow {
		room = buffer.Room() / 2
		t.Sleep(time.Millisecond)
	}
	now := uint32(t.Elapsed().Milliseconds())
	for buffer.Room() > room && (p.until == 0 || p.next < p.until) {
		e := p.event()
		e.Time = now
		buffer.Data = bytefrog.AppendEvent(buffer.Data, e)
		buffer.Events++
		p.next++
	}
	t.Send(buffer)
	return t.Proceed()
}

// start runs an agent of a program behind the guard.
func (b *bed) start(ctx context.Context, p bytefrogagent.Program, change ...func(o *bytefrogagent.Options)) (*bytefrogagent.Agent, <-chan bytefrogagent.Result) {
	o := bytefrogagent.Options{Endpoint: b.address, Settle: time.Second}
	if testing.Verbose() {
		o.Log = func(format string, args ...any) { b.t.Logf("agent: "+format, args...) }
	}
	for _, c := range change {
		c(&o)
	}
	a := bytefrogagent.New(o, p)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- a.Run(ctx) }()
	return a, results
}

// ended returns the result of an agent.
func ended(t testing.TB, results <-chan bytefrogagent.Result) bytefrogagent.Result {
	t.Helper()
	select {
	case r := <-results:
		return r
	case <-time.After(patience):
		require.Fail(t, "the agent doesn't end")
		return bytefrogagent.Result{}
	}
}

// checkRuns checks every event of every run. A run begins at one of the program's breaks or at its begin. It returns
// the begins of the runs.
func (p *counting) checkRuns(t testing.TB, runs map[callevent.StreamID]*run) []uint64 {
	t.Helper()
	p.mu.Lock()
	bases := append([]uint32{0}, p.breaks...)
	p.mu.Unlock()
	var found []uint64
	for _, r := range runs {
		if len(r.events) == 0 {
			continue
		}
		var wrong []string
		fits := false
		for _, base := range bases {
			var err error
			for number, e := range r.events {
				if err = p.check(uint64(base), number, e); err != nil {
					break
				}
			}
			if fits = err == nil; fits {
				found = append(found, uint64(base))
				break
			}
			wrong = append(wrong, err.Error())
		}
		require.True(t, fits, "a run fits none of the program's breaks %v: %s", bases, strings.Join(wrong, "; "))
	}
	return found
}

// announcedListener closes accepting with the first Accept.
type announcedListener struct {
	*net.TCPListener
	once      sync.Once
	accepting chan struct{}
}

func (l *announcedListener) Accept() (net.Conn, error) {
	l.once.Do(func() { close(l.accepting) })
	return l.TCPListener.Accept()
}
