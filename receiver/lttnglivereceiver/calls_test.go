// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// spans returns the spans that stack_pairing makes from all batches of the pipeline.
func (p *pipeline) spans(t testing.TB) []ptrace.Span {
	t.Helper()
	factory, sink := stackpairingprocessor.NewFactory(), new(consumertest.TracesSink)
	config := factory.CreateDefaultConfig()
	config.(*stackpairingprocessor.Config).SpanAttributes.Sequence = true
	processor, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(factory.Type()), config, sink)
	require.NoError(t, err)
	require.NoError(t, processor.Start(context.Background(), componenttest.NewNopHost()))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, traces := range p.batches {
		mine := ptrace.NewTraces()
		traces.CopyTo(mine)
		require.NoError(t, processor.ConsumeTraces(context.Background(), mine))
	}
	require.NoError(t, processor.Shutdown(context.Background()))
	var spans []ptrace.Span
	for _, traces := range sink.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	}
	return spans
}

// written returns the events with names that begin with event, from the text of babeltrace 1 for a capture.
func written(t testing.TB, capture, event string) []printed.Event {
	t.Helper()
	events, err := printed.Events(lttngdata.CaptureText(t, capture, "babeltrace1-offline.txt"))
	require.NoError(t, err)
	return slices.DeleteFunc(events, func(e printed.Event) bool { return !strings.HasPrefix(e.Name, event) })
}

// symbolTable is the output of nm for the program cyg, which is the same in all captures.
type symbolTable []struct {
	offset uint64
	name   string
}

func cygSymbols(t testing.TB) symbolTable {
	var table symbolTable
	for line := range strings.Lines(lttngdata.CaptureText(t, "cygok", "cyg.nm")) {
		fields := strings.Fields(line)
		offset, err := strconv.ParseUint(fields[0], 16, 64)
		require.NoError(t, err)
		table = append(table, struct {
			offset uint64
			name   string
		}{offset, fields[2]})
	}
	sort.Slice(table, func(i, j int) bool { return table[i].offset < table[j].offset })
	return table
}

func (s symbolTable) at(offset uint64) string {
	i := sort.Search(len(s), func(i int) bool { return s[i].offset > offset })
	if i == 0 {
		return ""
	}
	return s[i-1].name
}

func TestJavaCallRecordsBecomeCallsWithTheirArguments(t *testing.T) {
	r := newRelay(t, captured(t, "jul1"), lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()))
	var want []string
	for _, e := range written(t, "jul1", "lttng_jul:event") {
		word, rest, _ := strings.Cut(e.Field("msg"), " ")
		kind := map[string]callevent.Kind{"ENTRY": callevent.KindEnter, "RETURN": callevent.KindExit, "THROW": callevent.KindUnwind}[word]
		if kind == 0 || e.Field("int_loglevel") != "400" {
			continue
		}
		want = append(want, fmt.Sprint(kind, " ", e.Field("class_name"), ".", e.Field("method_name"), " ", e.Field("int_threadid"), " ", e.Field("procname"), " ", rest))
	}
	require.NotEmpty(t, want)
	b.await("call events", func() bool { return b.pipeline.events() >= len(want) })
	s := b.pipeline.only(t)
	var got []string
	for _, e := range s.inOrder(t) {
		require.NotZero(t, e.lane&callevent.LaneManaged)
		thread, _ := callevent.ThreadID(e.lane)
		got = append(got, fmt.Sprint(e.kind, " ", e.function, " ", thread, " ", e.thread, " ", e.values[process.AttributeArguments]+e.values[process.AttributeReturnValue]))
	}
	assert.Equal(t, want, got)

	b.shutdown()
	spans := b.pipeline.spans(t)
	names, failed := map[string]int{}, 0
	for _, span := range spans {
		names[span.Name()]++
		if span.Status().Code() == ptrace.StatusCodeError {
			failed++
		}
		_, truncated := span.Attributes().Get("callbraid.truncated")
		assert.False(t, truncated, span.Name())
	}
	enters, throws := 0, 0
	for _, line := range want {
		if strings.HasPrefix(line, "enter ") {
			enters++
		}
		if strings.HasPrefix(line, "unwind ") {
			throws++
		}
	}
	assert.Len(t, spans, enters)
	assert.Equal(t, throws, failed)
	assert.Positive(t, names["JulDemo.fib"])
}

// cygEvents returns the function entries and exits in a capture of the program cyg, in their order, which is that of
// the sequence numbers of call events.
func cygEvents(t testing.TB, capture string) []printed.Event {
	return written(t, capture, "lttng_ust_cyg_profile:func_e")
}

func hexOf(t testing.TB, text string) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	require.NoError(t, err)
	return n
}

// cygBase returns the program's base address in a capture.
func cygBase(t testing.TB, capture string) uint64 {
	for _, e := range written(t, capture, "lttng_ust_statedump:bin_info") {
		if strings.HasSuffix(e.Field("path"), "/cyg") {
			return hexOf(t, e.Field("baddr"))
		}
	}
	require.Fail(t, "the capture has no event with the program's address")
	return 0
}

func TestCallsOfACProgramAreNestedLikeInTheProgram(t *testing.T) {
	r := newRelay(t, captured(t, "cygok"), lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()))
	b.await("call events", func() bool { return b.pipeline.events() == 218 })
	b.await("the end", func() bool { return b.pipeline.only(t).has(callevent.BarrierEnd, callevent.CauseEnded) })
	assert.Len(t, b.pipeline.spans(t), 109)
	checkCygSpans(t, "cygok", b.pipeline)
}

func TestNoCallIsPairedAcrossDiscardedEvents(t *testing.T) {
	r := newRelay(t, captured(t, "cyg1"), lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()))
	b.await("call events", func() bool { return b.pipeline.events() == 3945+3914 })
	b.await("the count", func() bool { return b.metric("receiver_lttng_live_events_discarded") == 8951 })
	b.shutdown()
	s := b.pipeline.only(t)
	assert.True(t, s.has(callevent.BarrierBreak, callevent.CauseDiscarded))
	assert.Empty(t, s.twice)
	assert.EqualValues(t, 8951, b.metric("receiver_lttng_live_events_discarded"))
	checkCygSpans(t, "cyg1", b.pipeline)
}

// checkCygSpans compares spans with their events: the parent of each call is the calling function, and the exit of
// the same call ended it.
func checkCygSpans(t *testing.T, capture string, p *pipeline) {
	t.Helper()
	events, symbols, base := cygEvents(t, capture), cygSymbols(t), cygBase(t, capture)
	byID := map[pcommon.SpanID]ptrace.Span{}
	spans := p.spans(t)
	for _, span := range spans {
		byID[span.SpanID()] = span
	}
	event := func(span ptrace.Span) printed.Event {
		sequence, ok := span.Attributes().Get("callbraid.sequence")
		require.True(t, ok)
		return events[sequence.Int()]
	}
	offset := func(span ptrace.Span) uint64 {
		_, digits, ok := strings.Cut(textOf(span.Attributes(), "code.function.name"), "cyg+0x")
		require.True(t, ok)
		return hexOf(t, digits)
	}
	exits := map[string]*printed.Event{}
	for i, e := range events {
		if strings.HasSuffix(e.Name, "exit") {
			exits[e.Time] = &events[i]
		}
	}
	whole, nested := 0, 0
	for _, span := range spans {
		entry := event(span)
		require.Contains(t, entry.Name, "entry")
		require.Equal(t, hexOf(t, entry.Field("addr"))-base, offset(span))
		require.Equal(t, entry.Field("vtid"), textOf(span.Attributes(), "thread.id"))
		if parent, ok := byID[span.ParentSpanID()]; ok {
			nested++
			caller := symbols.at(hexOf(t, entry.Field("call_site")) - base)
			require.Equal(t, symbols.at(offset(parent)), caller, "call %s", entry.Text)
		}
		if _, truncated := span.Attributes().Get("callbraid.truncated"); truncated {
			continue
		}
		whole++
		exit := exits[span.EndTimestamp().AsTime().Format("15:04:05.000000000")]
		require.NotNil(t, exit, "call %s", entry.Text)
		require.Equal(t, entry.Field("addr"), exit.Field("addr"))
		require.Equal(t, entry.Field("call_site"), exit.Field("call_site"))
		require.Equal(t, entry.Field("vtid"), exit.Field("vtid"))
	}
	t.Logf("%d spans, %d of them whole, %d with their parent", len(spans), whole, nested)
	assert.Positive(t, whole)
}

// julCalls returns a session with calls of Java. Their arguments have this number of bytes.
func julCalls(calls, bytes int) *synthetic.Session {
	s := synthetic.New("arguments", "vpid", "vtid")
	s.Class(mapping.EventJUL, "msg$", "logger_name$", "class_name$", "method_name$", "long_millis", "int_loglevel", "int_threadid")
	p := s.Stream().Packet(10)
	for i := range calls {
		p.Event(uint64(10+2*i), mapping.EventJUL, 7, 7, fmt.Sprintf("ENTRY %d %s", i, strings.Repeat("x", bytes)), "l", "C", "m", 0, mapping.JULFiner, 1)
		p.Event(uint64(11+2*i), mapping.EventJUL, 7, 7, "RETURN", "l", "C", "m", 0, mapping.JULFiner, 1)
	}
	return s
}

func TestAFullBatchDropsNoArguments(t *testing.T) {
	for name, test := range map[string]struct{ calls, bytes int }{
		"long": {200, 5000}, "short": {8_000, 55},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t, []*lttnglive.Recording{julCalls(test.calls, test.bytes).Recording(1)}, lttnglive.RelayOptions{})
			b := newBed(t, reading(r.address()), withoutLogs)
			b.awaitSaid("The session was closed")
			b.shutdown()
			events := b.pipeline.only(t).inOrder(t)
			require.Len(t, events, 2*test.calls)
			for i, e := range events {
				if i%2 == 0 {
					require.Equal(t, fmt.Sprint(i/2, " ", strings.Repeat("x", test.bytes)), e.values[process.AttributeArguments])
				}
			}
			assert.Zero(t, b.metric("receiver_lttng_live_call_values_cut"))
		})
	}
}

func TestArgumentsThatAreTooLongAreTruncatedAndCounted(t *testing.T) {
	r := newRelay(t, []*lttnglive.Recording{julCalls(3, callevent.MaxNameBytes).Recording(1)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), withoutLogs)
	b.awaitSaid("The session was closed")
	b.shutdown()
	events := b.pipeline.only(t).inOrder(t)
	require.Len(t, events, 6)
	for i := range 3 {
		assert.Equal(t, fmt.Sprint(i, " ", strings.Repeat("x", callevent.MaxNameBytes-2)), events[2*i].values[process.AttributeArguments])
	}
	assert.EqualValues(t, 3, b.metric("receiver_lttng_live_call_values_cut"))
}
