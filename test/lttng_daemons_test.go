// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/test/kit"
)

// LTTng's own daemons, with traced programs. The built distribution reads their events at the same time.

const (
	callsInC    = "testdata/lttng/calls.c"
	callsInJava = "testdata/lttng/Calls.java"

	// callsOfTree is the number of calls of a tree in C with depth 4: 31 of tree, 46 of leaf, and 15 each of left and
	// right.
	callsOfTree = 107
)

// reader configures a collector that reads from the relay daemon at an address, and finds the files of the traced
// programs. max_delay is long, because LTTng's daemons may be slow on a busy machine.
func reader(relay string) string {
	return strings.Replace(viewer(relay, "max_delay: 1h"), "${env:DIR}/root", "/", 1)
}

// onlySpans removes the pipeline for logs.
func onlySpans(configuration string) string {
	return strings.Replace(configuration, "logs: {receivers: [lttng_live], exporters: [file/logs]}", "", 1)
}

// awaitClosed waits until the collector has read sessions to their ends.
func awaitClosed(t *testing.T, c *kit.Collector, sessions int) {
	t.Helper()
	awaitSaid(t, c, "The session was closed", sessions)
}

// awaitSaid waits until the collector has logged a text this number of times.
func awaitSaid(t *testing.T, c *kit.Collector, text string, times int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d times %q in the log", times, text), func() (bool, string) {
		n := strings.Count(c.Log(), text)
		return n >= times, strconv.Itoa(n)
	})
}

// orderOfEvents is the order for the comparison of events.
func orderOfEvents(a, b lttng.Event) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Name, b.Name))
}

// logged returns the events that became log records.
func logged(t *testing.T, c *kit.Collector) (events []lttng.Event) {
	t.Helper()
	eachLog(t, c, func(resource pcommon.Resource, r plog.LogRecord) {
		process, _ := resource.Attributes().Get("process.pid")
		thread, managed := r.Attributes().Get("vtid")
		if !managed {
			thread, _ = r.Attributes().Get("thread.id")
		}
		events = append(events, lttng.Event{Time: int64(r.Timestamp()), Name: r.EventName(), Process: process.Int(), Thread: thread.Int()})
	})
	slices.SortFunc(events, orderOfEvents)
	return events
}

// requireRecorded compares the log records with all events that babeltrace2 reads from the relay daemon's files.
func requireRecorded(t *testing.T, daemons *lttng.Daemons, c *kit.Collector) {
	t.Helper()
	want, _ := lttng.Recorded(t, daemons.Relay.Output)
	slices.SortFunc(want, orderOfEvents)
	got := logged(t, c)
	require.Len(t, got, len(want))
	for i, w := range want {
		if w != got[i] {
			require.Equal(t, w, got[i], "event %d", i)
		}
	}
}

// runC runs a C program from its beginning to its end.
func runC(t *testing.T, daemons *lttng.Daemons, path string, args ...string) *lttng.Program {
	t.Helper()
	p := daemons.StartC(t, path, args...)
	p.Step(t)
	p.End(t)
	return p
}

func TestAllCallsArriveWithBuffersForEachUser(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "all"})
	java := daemons.LaunchJava(t, daemons.BuildJava(t, callsInJava), "3", "20", "4")
	programs := []*lttng.Program{java}

	// One long program, and several short ones, one after the other and at the same time.
	long := daemons.StartC(t, path, "4", "20", "5", "0")
	programs = append(programs, long)
	long.Step(t)
	for range 5 {
		short := daemons.StartC(t, path, "2", "3", "3", "0")
		short.Step(t)
		short.End(t)
		programs = append(programs, short)
	}
	var together []*lttng.Program
	for range 3 {
		together = append(together, daemons.StartC(t, path, "2", "3", "3", "0"))
	}
	for _, p := range together {
		p.Begin(t)
	}
	for _, p := range together {
		p.Done(t)
		p.End(t)
	}
	programs = append(programs, together...)
	java.Ready(t)
	java.Step(t)
	java.End(t)
	long.Step(t)
	long.End(t)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	assert.Zero(t, c.Metric(t, lttngDiscarded))
	c.Stop(t)

	spans := readStreams(t, c, "spans.bin")
	assert.Len(t, spans, len(programs), "call streams")
	for _, p := range programs {
		requireAll(t, spans, p, "all")
	}
	_, others := readTruth(t, java)
	refused := 0
	for _, r := range readLogs(t, c) {
		if r.Body().AsString() == "refused" {
			assert.Equal(t, plog.SeverityNumberWarn, r.SeverityNumber())
			refused++
		}
	}
	assert.Equal(t, map[string]int{"refused": refused}, others)
	requireRecorded(t, daemons, c)
}

func TestTheFastVariantOfTheTracerHasTheSameSpans(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "fast"})
	arguments := []string{"3", "10", "4", "0"}
	slow, fast := daemons.StartC(t, path, arguments...), daemons.StartFastC(t, path, arguments...)
	for range 3 {
		slow.Begin(t)
		fast.Begin(t)
		slow.Done(t)
		fast.Done(t)
	}
	slow.End(t)
	fast.End(t)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	assert.Zero(t, c.Metric(t, lttngDiscarded))
	c.Stop(t)

	recorded := map[int64]map[string]int{}
	for _, e := range logged(t, c) {
		if provider, event, _ := strings.Cut(e.Name, ":"); strings.HasPrefix(event, "func_") {
			if recorded[e.Process] == nil {
				recorded[e.Process] = map[string]int{}
			}
			recorded[e.Process][provider]++
		}
	}
	calls, _ := readTruth(t, fast)
	events := 2 * calls.count()
	assert.Equal(t, map[int64]map[string]int{
		int64(slow.PID): {"lttng_ust_cyg_profile": events},
		int64(fast.PID): {"lttng_ust_cyg_profile_fast": events},
	}, recorded)
	spans := readStreams(t, c, "spans.bin")
	requireAll(t, spans, slow, "fast")
	requireAll(t, spans, fast, "fast")
	requireRecorded(t, daemons, c)
}

// Relay daemons up to 2.13 do not send all data to viewers when a process ends, even to fast ones.
func TestAllEventsOfTheRelayDaemonArriveWithBuffersForEachProcess(t *testing.T) {
	t.Parallel()
	const threads = 3
	daemons := lttng.Start(t)
	tap := newTap(t, daemons.Relay.Live)
	c := kit.Start(t, reader(tap.address))
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "own", PerProcess: true})
	long := daemons.StartC(t, path, strconv.Itoa(threads), "20", "4", "0")
	programs := []*lttng.Program{long}
	long.Step(t)
	c.AwaitMetric(t, float64(2*threads*20*callsOfTree), lttngCalls)
	for range 5 {
		short := runC(t, daemons, path, "2", "20", "4", "0")
		programs = append(programs, short)
	}
	long.Step(t)
	long.End(t)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	read, cut := c.Metric(t, lttngEvents), c.Metric(t, "otelcol_receiver_lttng_live_streams_cut")
	c.Stop(t)

	// The events that the relay daemon sent, and those that it withheld.
	events, withheld := 0, 0
	for _, connection := range tap.captures(t) {
		streams, n := sentOn(t, connection)
		events += n
		for _, s := range streams {
			if s.isCut() {
				withheld++
			}
		}
	}
	assert.EqualValues(t, events, read)
	assert.EqualValues(t, withheld, cut)
	assert.Contains(t, c.Log(), "The session has buffers for each process")
	assert.Equal(t, withheld > 0, strings.Contains(c.Log(), "before the relay daemon sent its last packet"))

	// All log records were recorded.
	got := logged(t, c)
	assert.Len(t, got, events)
	recorded, discarded := lttng.Recorded(t, daemons.Relay.Output)
	slices.SortFunc(recorded, orderOfEvents)
	require.Zero(t, discarded)
	missing := map[int64]int{}
	for _, e := range recorded {
		if len(got) > 0 && got[0] == e {
			got = got[1:]
		} else {
			missing[e.Process]++
		}
	}
	require.Empty(t, got)
	t.Logf("%d of %d events were not sent, %d streams lack their last packet; by process %v", len(recorded)-events, len(recorded), withheld, missing)

	spans := readStreams(t, c, "spans.bin")
	offsets := lttng.ClockOffsets(t, daemons.Relay.Output)
	for _, p := range programs {
		if missing[int64(p.PID)] == 0 {
			requireAll(t, spans, p, "own")
		} else {
			requireNothingWrong(t, spans, p, "own", offsets)
		}
	}
	// The first calls of a program that continues are not withheld.
	calls, _ := readTruth(t, long)
	of := spans.ofProcess(long.PID, "own")
	require.Len(t, of, 1)
	for _, thread := range calls.threads()[1 : 1+threads] {
		requireThread(t, thread, calls[thread], of[0].calls(false))
	}
}

func TestNoSpanIsWrongIfTheTracerDiscardsEvents(t *testing.T) {
	t.Parallel()
	for name, start := range tracersOfC {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireNothingWrongOverloaded(t, start)
		})
	}
}

// startC starts a C program under a variant of LTTng's tracer.
type startC func(d *lttng.Daemons, t testing.TB, path string, arguments ...string) *lttng.Program

var tracersOfC = map[string]startC{
	"tracer":       (*lttng.Daemons).StartC,
	"fast variant": (*lttng.Daemons).StartFastC,
}

// runOverloaded makes programs do more calls than fit into the tracer's buffers.
func runOverloaded(t *testing.T, daemons *lttng.Daemons, session *lttng.Session, start startC, path string) (programs []*lttng.Program) {
	t.Helper()
	for range 2 {
		programs = append(programs, start(daemons, t, path, "4", "20", "5", "1000"))
	}
	for range 5 {
		for _, p := range programs {
			p.Begin(t)
		}
		for _, p := range programs {
			p.Done(t)
		}
	}
	for _, p := range programs {
		p.End(t)
	}
	// On a busy machine, losses can cover all of these calls. The last losses end when tracing stops, and a few calls have room then.
	session.Stop(t)
	session.Start(t)
	last := start(daemons, t, path, "1", "1", "2", "0")
	last.Step(t)
	last.End(t)
	return append(programs, last)
}

func requireNothingWrongOverloaded(t *testing.T, start startC) {
	t.Helper()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "overload", Buffer: overloadedBuffer})
	programs := runOverloaded(t, daemons, session, start, path)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	counted := c.Metric(t, lttngDiscarded)
	c.Stop(t)

	requireRecorded(t, daemons, c)
	_, discarded := lttng.Recorded(t, daemons.Relay.Output)
	assert.EqualValues(t, discarded, counted)
	trace := readTrace(t, daemons.Relay.Output)
	spans := readStreams(t, c, "spans.bin")
	did, whole := 0, 0
	for _, p := range programs {
		calls, _ := readTruth(t, p)
		_, gaps := trace.gaps(calls)
		trace.requireLosses(t, gaps)
		did += calls.count()
		for _, e := range spans.ofProcess(p.PID, "overload") {
			n, err := e.wrong(calls, trace.offset, trace.doubtful(gaps))
			require.NoError(t, err)
			whole += n
		}
	}
	t.Logf("%d calls, %d whole spans, %d events discarded", did, whole, discarded)
	assert.Positive(t, whole)
	assert.Less(t, whole, did, "the tracer had room for all: the test needs more calls")
}

func TestARestartedRelayDaemonIsReadAgain(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "shop"})
	long := daemons.StartC(t, path, "3", "10", "4", "0")
	long.Step(t)
	c.AwaitMetric(t, 1_000, lttngCalls)
	long.Begin(t)
	daemons.Relay.Kill(t)
	long.Done(t)
	c.AwaitMetric(t, 1, lttngFailures)
	daemons.Relay.Start(t)
	session.Abandon(t)
	awaitSaid(t, c, "The session is gone from the relay daemon", 1)

	session = daemons.Create(t, lttng.Session{Name: "shop"})
	long.Step(t)
	long.End(t)
	short := daemons.StartC(t, path, "3", "10", "4", "0")
	short.Step(t)
	short.End(t)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	c.Stop(t)

	spans := readStreams(t, c, "spans.bin")
	requireAll(t, spans, short, "shop")
	assert.Positive(t, requireNothingWrong(t, spans, long, "shop", lttng.ClockOffsets(t, daemons.Relay.Output)))
	// All calls of the second session: those of the threads started in it.
	calls, _ := readTruth(t, long)
	threads := calls.threads()
	for _, thread := range threads[len(threads)-3:] {
		found := 0
		for _, e := range spans.ofProcess(long.PID, "shop") {
			if got := e.calls(false); len(got[thread]) > 0 {
				requireThread(t, thread, calls[thread], got)
				found++
			}
		}
		assert.Equal(t, 1, found, "thread %s", thread)
	}
}

func TestASessionThatIsCreatedAgainIsANewSession(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	path := daemons.BuildC(t, callsInC)
	var programs []*lttng.Program
	for range 3 {
		session := daemons.Create(t, lttng.Session{Name: "shop"})
		p := runC(t, daemons, path, "2", "10", "4", "0")
		programs = append(programs, p)
		session.Destroy(t)
	}
	awaitClosed(t, c, len(programs))
	c.Stop(t)
	spans := readStreams(t, c, "spans.bin")
	for _, p := range programs {
		requireAll(t, spans, p, "shop")
	}
}

func TestTwoSessionsAtTheSameTimeAreReadCompletely(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	path := daemons.BuildC(t, callsInC)
	first := daemons.Create(t, lttng.Session{Name: "first"})
	alone := runC(t, daemons, path, "2", "10", "4", "0")
	second := daemons.Create(t, lttng.Session{Name: "second"})
	java := daemons.LaunchJava(t, daemons.BuildJava(t, callsInJava), "2", "10", "3")
	both := runC(t, daemons, path, "2", "10", "4", "0")
	java.Ready(t)
	java.Step(t)
	java.End(t)
	second.Destroy(t)
	first.Destroy(t)
	awaitClosed(t, c, 2)
	c.Stop(t)
	spans := readStreams(t, c, "spans.bin")
	requireAll(t, spans, alone, "first")
	assert.Empty(t, spans.ofProcess(alone.PID, "second"))
	for _, session := range []string{"first", "second"} {
		requireAll(t, spans, both, session)
		requireAll(t, spans, java, session)
	}
	requireRecorded(t, daemons, c)
}

func TestAProgramThatStartsDuringASessionIsReadImmediately(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "shop"})
	calls := 0
	var programs []*lttng.Program
	for range 3 {
		p := runC(t, daemons, path, "2", "10", "4", "0")
		programs = append(programs, p)
		of, _ := readTruth(t, p)
		calls += of.count()
		c.AwaitMetric(t, float64(2*calls), lttngCalls)
	}
	session.Destroy(t)
	awaitClosed(t, c, 1)
	c.Stop(t)
	spans := readStreams(t, c, "spans.bin")
	for _, p := range programs {
		requireAll(t, spans, p, "shop")
	}
}

func TestAnLTTngClearIsLoggedAndMakesNoSpanWrong(t *testing.T) {
	t.Parallel()
	const threads = 3
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	session := daemons.Create(t, lttng.Session{Name: "shop"})
	p := daemons.StartC(t, daemons.BuildC(t, callsInC), strconv.Itoa(threads), "10", "4", "0")
	p.Step(t)
	c.AwaitMetric(t, 1_000, lttngCalls)
	// Events from here on are cleared before they are read.
	c.Freeze(t)
	size := daemons.Relay.Size(t)
	p.Step(t)
	testkit.Eventually(t, "the relay daemon has the unread events", func() (bool, string) {
		now := daemons.Relay.Size(t)
		return now > size, strconv.FormatInt(now, 10)
	})
	session.Clear(t)
	c.Thaw(t)
	p.Step(t)
	// After a clear, the relay daemon sends nothing if the session is destroyed before the next request.
	c.AwaitMetric(t, 1, "otelcol_receiver_lttng_live_packets_lost")
	p.End(t)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	awaitSaid(t, c, "The session was cleared", 1)
	assert.Positive(t, c.Metric(t, "otelcol_receiver_lttng_live_cleared"))
	c.Stop(t)

	spans := readStreams(t, c, "spans.bin")
	calls, _ := readTruth(t, p)
	whole := requireNothingWrong(t, spans, p, "shop", lttng.ClockOffsets(t, daemons.Relay.Output))
	assert.Less(t, whole, calls.count())
	got := spans.ofProcess(p.PID, "shop")
	require.Len(t, got, 1)
	inOrder := calls.threads()
	require.Len(t, inOrder, 1+3*threads)
	for _, thread := range inOrder[1+2*threads:] {
		requireThread(t, thread, calls[thread], got[0].calls(false))
	}
}

// Packets that the relay daemon removed between their index and the request for them are missing. All others are not.
func TestOverwrittenPacketsMakeNoSpanWrong(t *testing.T) {
	const threads = 2
	for name, test := range map[string]struct {
		session lttng.Session
		steps   int
		clear   bool
	}{
		"by lttng clear": {lttng.Session{Name: "shop"}, 12, true},
		// A step has about 130 KB. One step fits in a buffer, and stays in a file until it is read. All steps
		// together, on two CPUs, do not fit.
		"because the files are overwritten": {lttng.Session{Name: "shop", Buffer: 256 << 10, Files: 2}, 24, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemons := lttng.Start(t)
			tap := newTap(t, daemons.Relay.Live)
			c := kit.Start(t, onlySpans(strings.Replace(reader(tap.address), "poll:", "request_timeout: 5m\n    poll:", 1)))
			session := daemons.Create(t, test.session)
			p := daemons.StartC(t, daemons.BuildC(t, callsInC), strconv.Itoa(threads), "5", "4", "1000")
			p.Step(t)
			c.AwaitMetric(t, 1_000, lttngCalls)
			tap.hold(lttnglive.CommandGetPacket)
			steps := 1
			for range test.steps {
				before := daemons.Relay.Written(t)
				p.Step(t)
				steps++
				testkit.Eventually(t, "it is with the relay daemon", func() (bool, string) {
					now := daemons.Relay.Written(t)
					return now.After(before), now.String()
				})
			}
			tap.awaitHeld(t)
			if test.clear {
				session.Clear(t)
			}
			tap.release()
			p.Step(t)
			p.End(t)
			session.Destroy(t)
			awaitClosed(t, c, 1)
			assert.Positive(t, c.Metric(t, "otelcol_receiver_lttng_live_packets_lost"))
			assert.Zero(t, c.Metric(t, lttngFailures))
			assert.NotContains(t, c.Log(), "cannot be read")
			assert.Zero(t, c.Metric(t, lttngDiscarded), "the tracer had no room: the test needs larger buffers")
			c.Stop(t)

			spans := readStreams(t, c, "spans.bin")
			calls, _ := readTruth(t, p)
			whole := requireNothingWrong(t, spans, p, "shop", lttng.ClockOffsets(t, daemons.Relay.Output))
			t.Logf("%d calls, %d whole spans", calls.count(), whole)
			assert.Less(t, whole, calls.count())
			// All calls after the loss are there.
			got := spans.ofProcess(p.PID, "shop")
			require.Len(t, got, 1)
			inOrder := calls.threads()
			require.Len(t, inOrder, 1+(steps+1)*threads)
			for _, thread := range inOrder[1+steps*threads:] {
				requireThread(t, thread, calls[thread], got[0].calls(false))
			}
		})
	}
}

func TestASessionThatIsStoppedAndStartedMakesNoSpanWrong(t *testing.T) {
	t.Parallel()
	requireNothingWrongAcrossStops(t, "")
}

// Empty buffers mark a stop of tracing. Those of the channel for Java are always empty.
func TestASessionWithoutStateThatIsStoppedAndStartedMakesNoSpanWrong(t *testing.T) {
	t.Parallel()
	requireNothingWrongAcrossStops(t, "lttng_ust_cyg_profile:*,lttng_ust_statedump:b*")
}

func requireNothingWrongAcrossStops(t *testing.T, events string) {
	t.Helper()
	const threads, stops = 3, 5
	daemons := lttng.Start(t)
	c := kit.Start(t, onlySpans(reader(daemons.Relay.Live)))
	// LTTng discards events while both buffers wait for the reader. On a busy machine they wait long: two steps with
	// 0.7 MB each fit in one buffer, and buffers are rarely passed to the reader, even with few events.
	session := daemons.Create(t, lttng.Session{Name: "shop", Events: events, Live: 5 * time.Second, Buffer: 2 << 20})
	p := daemons.StartC(t, daemons.BuildC(t, callsInC), strconv.Itoa(threads), "10", "5", "5000")
	for range stops {
		p.Begin(t)
		session.Stop(t)
		session.Start(t)
		p.Done(t)
	}
	p.Step(t)
	p.End(t)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	assert.GreaterOrEqual(t, c.Metric(t, lttngBreaks, `cause="suspended"`), float64(stops))
	assert.Zero(t, c.Metric(t, lttngDiscarded))
	c.Stop(t)

	spans := readStreams(t, c, "spans.bin")
	calls, _ := readTruth(t, p)
	whole := requireNothingWrong(t, spans, p, "shop", lttng.ClockOffsets(t, daemons.Relay.Output))
	t.Logf("%d calls, %d whole spans", calls.count(), whole)
	// It is one process all the time, and all calls without a stop are there.
	got := spans.ofProcess(p.PID, "shop")
	require.Len(t, got, 1)
	inOrder := calls.threads()
	for _, thread := range inOrder[len(inOrder)-threads:] {
		requireThread(t, thread, calls[thread], got[0].calls(false))
	}
}
