// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/internal/testkit/storagetest"
)

// otherRecording is the line about a position that belongs to another recording.
const otherRecording = "Another recording has replaced the one that was read: it is read from its beginning"

func TestAnotherRecordingAtTheSamePathIsReadFromItsBeginning(t *testing.T) {
	// The first recording has 4 packets, the second one 8.
	recording := func(environment string, begin uint64, pid int) *synthetic.Session {
		s := synthetic.New("shop", "vpid", "vtid")
		s.Anonymous, s.Environment = true, environment
		s.Class("shop:sold", "number")
		stream := s.Stream()
		for i := range 8 {
			at := begin + uint64(1000*i)
			stream.Packet(at)
			for j := range 5 {
				stream.Event(at+uint64(j), "shop:sold", 7, pid, 5*i+j+1)
			}
		}
		return s
	}
	place := func(t *testing.T, dir string, s *synthetic.Session, packets int, numbers string) {
		t.Helper()
		s.Streams[0].Packets = s.Streams[0].Packets[:packets]
		write(t, dir, s)
		writeFile(t, filepath.Join(dir, "metadata"), bytes.ReplaceAll(s.Metadata(), []byte("packet_seq_num"), []byte(numbers)))
	}
	for name, second := range map[string]*synthetic.Session{
		"other metadata": recording("other = 1;", 1000, 8), "other times": recording("", 2000, 8), "other events at the same times": recording("", 1000, 9),
	} {
		for numbers, numbered := range map[string]string{"with sequence numbers": "packet_seq_num", "without": "something_else"} {
			t.Run(name+" "+numbers, func(t *testing.T) {
				dir := t.TempDir()
				kept := storagetest.New()
				place(t, dir, recording("", 1000, 8), 4, numbered)
				assert.Equal(t, upTo(20), readAll(t, dir, storing(kept)).numbers())
				place(t, dir, second, 8, numbered)
				b := readAll(t, dir, storing(kept))
				assert.Equal(t, upTo(40), b.numbers())
				assert.EqualValues(t, 1, b.Lines(otherRecording))
				b = readAll(t, dir, storing(kept))
				assert.Empty(t, b.numbers())
				assert.Zero(t, b.Lines(otherRecording))
			})
		}
	}
}

func TestAPositionBelongsToTheMetadataOfARecordingAndNotToItsDirectory(t *testing.T) {
	dir := t.TempDir()
	kept := storagetest.New()
	recording := func(environment string, packets int) *synthetic.Session {
		s := sold("shop", packets, 5)
		s.Environment += environment
		return s
	}
	write(t, filepath.Join(dir, "a"), recording("", 2))
	write(t, filepath.Join(dir, "b"), recording("more = 1; ", 6))
	assert.Len(t, readAll(t, dir, storing(kept)).numbers(), 40)
	// Now the other one is found first, and both have one packet more.
	write(t, filepath.Join(dir, "c"), recording("", 3))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "a")))
	write(t, filepath.Join(dir, "b"), recording("more = 1; ", 7))
	b := readAll(t, dir, storing(kept))
	assert.ElementsMatch(t, []int{11, 12, 13, 14, 15, 31, 32, 33, 34, 35}, b.numbers())
	assert.Zero(t, b.Lines(otherRecording))
}

// kernelTrace returns a trace of the kernel with system calls of threads that move between two CPUs.
func kernelTrace(calls int) *synthetic.Session {
	s := synthetic.New("kernel")
	s.Kernel = true
	s.Class("lttng_statedump_process_state", "tid", "pid", "name$")
	s.Class("sched_switch", "prev_comm$", "prev_tid", "prev_state", "next_comm$", "next_tid")
	s.Class("syscall_entry_read", "fd")
	s.Class("syscall_exit_read", "ret")
	s.Stream()
	s.Stream().CPU = 1
	at := uint64(1000)
	next := func() uint64 { at += 1000; return at }
	for _, stream := range s.Streams {
		stream.Packet(at)
	}
	const threads = 4
	for tid := 1; tid <= threads; tid++ {
		s.Streams[0].Event(next(), "lttng_statedump_process_state", 10*tid, 10*tid, fmt.Sprint("program", tid))
	}
	running := [2]int{}
	for i := range calls {
		cpu, thread := i%2, i/2%2*2+i%2+1
		stream := s.Streams[cpu]
		if i/2%20 == 0 {
			stream.Packet(next())
		}
		name := func(thread int) string { return fmt.Sprint("program", thread) }
		stream.Event(next(), "sched_switch", name(running[cpu]), 10*running[cpu], 1, name(thread), 10*thread)
		running[cpu] = thread
		stream.Event(next(), "syscall_entry_read", i)
		stream.Event(next(), "syscall_exit_read", i)
	}
	return s
}

func TestACollectorContinuesATraceOfTheKernel(t *testing.T) {
	calls := fewer(testing.Short(), 20_000)
	dir := t.TempDir()
	write(t, dir, kernelTrace(calls))
	rule := mapping.CallRule{Entry: mapping.RuleEvent{Event: "syscall_entry_*"}, Exit: mapping.RuleEvent{Event: "syscall_exit_*"}, Outermost: true, Attributes: []string{"fd"}}
	onCPU := mapping.CallRule{
		Entry: mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"next_tid"}}, Exit: mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"prev_tid"}},
		Name: "on CPU {next_comm}", Lane: mapping.LaneCPU, KeyIsThread: true,
	}
	rules := func(_ *bed, c *Config) { c.CallRules = []mapping.CallRule{rule, onCPU} }
	// spans returns the spans by their argument, and the number of those that are cut at a restart. times are those on a
	// CPU that are not cut.
	spans := func(o *output) (whole map[int64]string, cut int, times map[string]bool) {
		whole, times = map[int64]string{}, map[string]bool{}
		for _, traces := range o.spans.AllTraces() {
			for _, resource := range traces.ResourceSpans().All() {
				for _, scope := range resource.ScopeSpans().All() {
					for _, s := range scope.Spans().All() {
						text := spanText(resource.Resource().Attributes().AsRaw(), withoutIDs(s))
						_, truncated := s.Attributes().Get("callbraid.truncated")
						switch isTime := strings.HasPrefix(s.Name(), "on CPU "); {
						case isTime && !truncated:
							times[text] = true
						case isTime:
						case truncated:
							cut++
						default:
							whole[number(t, s, "lttng.fd")] = text
						}
					}
				}
			}
		}
		return whole, cut, times
	}
	var once output
	pairing, finish := once.pairing(t)
	readAll(t, dir, rules, func(b *bed, _ *Config) { b.Next.Traces = pairing })
	finish()
	want, _, allTimes := spans(&once)
	require.Len(t, want, calls)
	require.Len(t, allTimes, calls-2, "the trace ends with a call on each CPU")

	var several output
	pairing, finish = several.pairing(t)
	kept := storagetest.New()
	records, collectors := 0, 0
	for all := calls*3 + 4; records < all; collectors++ {
		b := unstartedBed(t, dir, rules, storing(kept), func(b *bed, _ *Config) { b.Next.Traces = pairing })
		b.receiver.env.Settings.Limits.AheadBytes = 1
		b.Start()
		b.Await("some events", func() bool { return len(b.Logs.AllLogs()) > 0 })
		b.Shutdown()
		n := len(b.Records(""))
		require.Positive(t, n)
		records += n
		require.LessOrEqual(t, records, all, "each event arrives once")
	}
	finish()
	require.Greater(t, collectors, 2)
	got, cut, times := spans(&several)
	for fd, span := range got {
		require.Equal(t, want[fd], span)
	}
	t.Log(collectors, "collectors,", len(got), "spans,", cut, "cut")
	assert.Equal(t, calls, len(got)+cut, "each collector knows which threads run")
	assert.LessOrEqual(t, cut, 2*collectors, "one call on each CPU")
	for text := range times {
		require.True(t, allTimes[text], text)
	}
	assert.GreaterOrEqual(t, len(times), len(allTimes)-2*collectors, "one time on each CPU")
}

// number returns a number in the attributes of a span.
func number(t testing.TB, s ptrace.Span, key string) int64 {
	t.Helper()
	v, ok := s.Attributes().Get(key)
	require.True(t, ok, "%s of %v", key, s.Attributes().AsRaw())
	return v.Int()
}

// withoutIDs returns a copy of a span without IDs. These come from the order of calls since the begin of a process.
func withoutIDs(s ptrace.Span) ptrace.Span {
	other := ptrace.NewSpan()
	s.CopyTo(other)
	other.SetTraceID([16]byte{})
	other.SetSpanID([8]byte{})
	other.SetParentSpanID([8]byte{})
	return other
}

func TestAFileThatIsCutAndGrowsBeyondItsLastSizeIsReadFromItsBeginning(t *testing.T) {
	dir := t.TempDir()
	s := sold("shop", 10, 5)
	write(t, dir, sold("shop", 4, 5))
	b := newBed(t, dir, watching(time.Millisecond, time.Hour))
	b.awaitNumbers(upTo(20))
	for i := range 2 {
		// One call writes the other content, so that no look finds a smaller file.
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("channel0_%d", i)), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.Write(bytes.Join([][]byte{packetBytes(s, i, 2), packetBytes(s, i, 3), packetBytes(s, i, 4)}, nil))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	b.awaitNumbers(upTo(50))
}

func TestWaitingTracesAreAWarning(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(dir, name), sold(name, 2, 5))
	}
	b := newBed(t, dir, watching(time.Millisecond, time.Hour), func(_ *bed, c *Config) { c.Limits.MaxOpenTraces = 1 })
	line := b.AwaitLine("Traces wait until others end: raise limits.max_open_traces").ContextMap()
	assert.EqualValues(t, 2, line["waiting"])
	assert.EqualValues(t, 1, line["max_open_traces"])
}
