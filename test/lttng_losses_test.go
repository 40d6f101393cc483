// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/ctfdir"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// Each event that is missing has a loss between the events of its thread before and after it. The loss need not have the time of
// the event, because a thread counts a discarded event before it records the next one.
func TestALossIsBesideEachDiscardedEvent(t *testing.T) {
	t.Parallel()
	for name, start := range tracersOfC {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemons := lttng.Start(t)
			path := daemons.BuildC(t, callsInC)
			session := daemons.Create(t, lttng.Session{Name: "overload", Buffer: overloadedBuffer})
			programs := runOverloaded(t, daemons, session, start, path)
			session.Destroy(t)

			trace := readTrace(t, daemons.Relay.Output)
			missing := 0
			for _, p := range programs {
				calls, _ := readTruth(t, p)
				n, gaps := trace.gaps(calls)
				trace.requireLosses(t, gaps)
				missing += n
			}
			t.Logf("%d events of calls are missing, in %d losses", missing, len(trace.losses))
			assert.Positive(t, missing, "the tracer had room for all: the test needs more calls")
		})
	}
}

// overloadedBuffer is the size of a buffer in bytes that is too small for the calls of runOverloaded.
const overloadedBuffer = 64 << 10

// period is a time interval in nanoseconds since the Unix epoch. Both ends belong to it.
type period struct{ from, to int64 }

// overlaps reports whether two periods share a time.
func (p period) overlaps(other period) bool { return p.from <= other.to && other.from <= p.to }

// traceOnDisk is what the relay daemon wrote of a trace.
type traceOnDisk struct {
	offset int64
	// losses are those of the merger, in the order of their begin.
	losses  []period
	hidden  []hiddenLoss
	threads map[string]*entriesAndExits
}

// hiddenLoss is the end of a full packet, which does not count the events that were discarded then. In tracers before version 2.14,
// the thread that writes the last part of a packet also writes its count. If the thread lost its processor before, the count is that
// from before its event, or 0. A later packet has the real count, and the merger reports a loss there.
type hiddenLoss struct {
	period
	// reported is when that loss begins, or the end of time.
	reported int64
}

// hides reports whether the packet can hide that events are missing in a gap.
func (h hiddenLoss) hides(gap period) bool { return h.overlaps(gap) && gap.to < h.reported }

// readTrace reads the only trace below a directory.
func readTrace(t *testing.T, directory string) *traceOnDisk {
	t.Helper()
	offsets := lttng.ClockOffsets(t, directory)
	require.Len(t, offsets, 1, "traces")
	r := &traceOnDisk{offset: offsets[0], threads: readRecorded(t, directory)}
	files := os.DirFS(directory)
	found, err := ctfdir.Find(files, ".")
	require.NoError(t, err)
	require.Len(t, found, 1, "traces")
	dir, err := ctfdir.Open(files, found[0])
	require.NoError(t, err)
	streams := lttngdata.Packets(t, dir)
	r.losses = readLosses(t, dir, streams)
	minor, err := strconv.Atoi(dir.Trace.Env("tracer_minor"))
	require.NoError(t, err)
	if dir.Trace.Env("tracer_major") == "2" && minor < 14 {
		for _, packets := range streams {
			r.addHidden(t, ctf.NewReader(dir.Trace), packets)
		}
	}
	return r
}

// addHidden adds the packets of a stream that can hide a loss.
func (r *traceOnDisk) addHidden(t *testing.T, reader *ctf.Reader, packets [][]byte) {
	t.Helper()
	var highest uint64
	var end int64
	var uncounted []hiddenLoss // since the last packet that counts events
	for _, packet := range packets {
		require.NoError(t, reader.Begin(packet))
		p := reader.Packet
		if n := len(uncounted); n > 0 {
			uncounted[n-1].to = max(uncounted[n-1].to, int64(p.Begin)+r.offset)
		}
		// Before the last two events of a full packet there is room for each event of a call.
		var times [3]int64
		for reader.Next() {
			times[0], times[1], times[2] = times[1], times[2], int64(reader.Event.Clock)+r.offset
		}
		reader.Finish()
		if p.Discarded != highest {
			for _, h := range uncounted {
				h.reported = end
				r.hidden = append(r.hidden, h)
			}
			uncounted, highest = nil, max(highest, p.Discarded)
		} else if p.Size == 8*overloadedBuffer && p.Size-p.Content < 8*200 {
			uncounted = append(uncounted, hiddenLoss{period{times[0], int64(p.End) + r.offset}, math.MaxInt64})
		}
		end = int64(p.End) + r.offset
	}
	r.hidden = append(r.hidden, uncounted...)
}

// readLosses returns the losses that the merger reports.
func readLosses(t *testing.T, dir *ctfdir.Dir, streams [][][]byte) (losses []period) {
	t.Helper()
	m := merge.New(dir.Trace, merge.Options{})
	for i, packets := range streams {
		s := m.AddStream(uint64(i), dir.Streams[i])
		for _, packet := range packets {
			s.Packet(packet, nil)
		}
		s.End()
	}
	var open int
	var now period
	for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
		switch kind {
		case merge.LossBegin:
			if open == 0 {
				now = period{from: m.Time}
			}
			open++
		case merge.LossEnd:
			if open--; open == 0 {
				now.to = m.Time
				losses = append(losses, now)
			}
		}
	}
	require.NoError(t, m.Err())
	return losses
}

// entriesAndExits are the times of a thread's recorded events in nanoseconds since the Unix epoch, in order.
type entriesAndExits struct{ entries, exits []int64 }

// readRecorded returns the recorded events by thread.
func readRecorded(t *testing.T, directory string) map[string]*entriesAndExits {
	t.Helper()
	threads := map[string]*entriesAndExits{}
	events, _ := lttng.Recorded(t, directory)
	for _, e := range events {
		thread := strconv.FormatInt(e.Thread, 10)
		if threads[thread] == nil {
			threads[thread] = &entriesAndExits{}
		}
		switch of := threads[thread]; {
		case strings.HasSuffix(e.Name, ":func_entry"):
			of.entries = append(of.entries, e.Time)
		case strings.HasSuffix(e.Name, ":func_exit"):
			of.exits = append(of.exits, e.Time)
		}
	}
	return threads
}

// both returns the times of entries and exits, in order.
func (e *entriesAndExits) both() []int64 {
	return slices.Sorted(slices.Values(append(slices.Clone(e.entries), e.exits...)))
}

// gap is the time between the recorded events of a thread before and after events that are not recorded.
type gap struct {
	period
	thread string
	// loss is the index of the first loss that ends in the gap or later.
	loss int
}

// gaps returns the gaps in calls, and the number of events that are missing in all.
func (r *traceOnDisk) gaps(calls truth) (missing int, gaps []gap) {
	for thread, of := range calls {
		recorded := r.threads[thread]
		if recorded == nil {
			recorded = &entriesAndExits{}
		}
		all := recorded.both()
		found := map[int]bool{}
		for _, e := range recorded.withoutRecord(of, r.offset) {
			missing++
			before, _ := slices.BinarySearch(all, e.from)
			after, _ := slices.BinarySearch(all, e.to)
			if before == 0 || after == len(all) || found[before] {
				continue // the thread has no call that could get a wrong end, or the gap is the same
			}
			found[before] = true
			loss, _ := slices.BinarySearchFunc(r.losses, all[before-1], func(l period, from int64) int { return cmp.Compare(l.to, from) })
			gaps = append(gaps, gap{period{all[before-1], all[after]}, thread, loss})
		}
	}
	return missing, gaps
}

// hasLoss reports whether the merger reported a loss in the gap.
func (r *traceOnDisk) hasLoss(g gap) bool {
	return g.loss < len(r.losses) && r.losses[g.loss].from <= g.to
}

// requireLosses requires a loss in each gap that no packet can hide. Packets can hide at most half of the gaps.
func (r *traceOnDisk) requireLosses(t *testing.T, gaps []gap) {
	t.Helper()
	hidden := 0
	for _, g := range gaps {
		if r.hasLoss(g) {
			continue
		}
		if !slices.ContainsFunc(r.hidden, func(h hiddenLoss) bool { return h.hides(g.period) }) {
			require.Failf(t, "expected a loss beside each missing event", "thread %s, in %v: the losses beside it are %v, and these packets can hide some: %v",
				g.thread, g.period, r.losses[max(0, g.loss-1):min(len(r.losses), g.loss+1)], r.hidden)
		}
		hidden++
	}
	if hidden > 0 {
		t.Logf("the tracer did not count the events in %d of %d gaps", hidden, len(gaps))
	}
	assert.LessOrEqual(t, 2*hidden, len(gaps)+1, "gaps without a count of the tracer")
}

// doubtful returns by thread the periods in which calls can have a wrong end: from a gap without a loss to the next loss.
func (r *traceOnDisk) doubtful(gaps []gap) map[string][]period {
	doubtful := map[string][]period{}
	for _, g := range gaps {
		if r.hasLoss(g) {
			continue
		}
		until := int64(math.MaxInt64)
		if g.loss < len(r.losses) {
			until = r.losses[g.loss].from
		}
		doubtful[g.thread] = append(doubtful[g.thread], period{g.from, until})
	}
	return doubtful
}

// withoutRecord returns the periods of a thread's events that are not recorded, in nanoseconds since the Unix epoch, in the order of
// the calls' entries.
func (e *entriesAndExits) withoutRecord(calls []call, offset int64) (missing []period) {
	for _, c := range calls {
		if at := inTraceTime(c.entered, offset); !at.contains(e.entries) {
			missing = append(missing, at)
		}
		if at := inTraceTime(c.left, offset); !at.contains(e.exits) {
			missing = append(missing, at)
		}
	}
	return missing
}

// inTraceTime converts times of the monotonic clock. The end of the last call of a thread is open.
func inTraceTime(at [2]int64, offset int64) period {
	p := period{at[0] + offset, at[1]}
	if p.to != math.MaxInt64 {
		p.to += offset
	}
	return p
}

// contains reports whether one of these times, in order, is in the period.
func (p period) contains(times []int64) bool {
	at, _ := slices.BinarySearch(times, p.from)
	return at < len(times) && times[at] <= p.to
}
