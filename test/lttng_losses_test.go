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

// TestALossIsBesideEachDiscardedEvent is stricter than TestNoSpanIsWrongIfTheTracerDiscardsEvents: not each missing event
// makes a wrong span. A loss must be between the events of a thread before and after the missing one. It need not have the time
// of that event, because a thread counts a discarded event before it records the next one.
func TestALossIsBesideEachDiscardedEvent(t *testing.T) {
	t.Parallel()
	for name, start := range tracersOfC {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemons := lttng.Start(t)
			path := daemons.BuildC(t, callsInC)
			session := daemons.Create(t, lttng.Session{Name: "overload", Buffer: 64 << 10})
			programs := runOverloaded(t, daemons, start, path)
			session.Destroy(t)

			trace := readTrace(t, daemons.Relay.Output)
			missing := 0
			for _, p := range programs {
				calls, _ := readTruth(t, p)
				n, _ := trace.missing(t, calls)
				missing += n
			}
			t.Logf("%d events of calls are missing, in %d losses", missing, len(trace.losses))
			assert.Positive(t, missing, "the tracer had room for all: the test needs more calls")
		})
	}
}

// period is a time interval in nanoseconds since the Unix epoch. Both ends belong to it.
type period struct{ from, to int64 }

// overlaps reports whether two periods share a time.
func (p period) overlaps(other period) bool { return p.from <= other.to && other.from <= p.to }

// traceOnDisk is what the relay daemon wrote of a trace.
type traceOnDisk struct {
	offset int64
	// losses are those of the merger, in the order of their begin.
	losses []period
	// counted are the packets with another count of discarded events than the packet before.
	counted []period
	threads map[string]*entriesAndExits
}

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
	for _, packets := range streams {
		r.addCounted(t, ctf.NewReader(dir.Trace), packets)
	}
	return r
}

// addCounted adds the packets of a stream that have another count than the packet before.
func (r *traceOnDisk) addCounted(t *testing.T, reader *ctf.Reader, packets [][]byte) {
	t.Helper()
	var before uint64
	for _, packet := range packets {
		require.NoError(t, reader.Begin(packet))
		now := reader.Packet
		reader.Finish()
		if now.Discarded != before {
			r.counted = append(r.counted, period{int64(now.Begin) + r.offset, int64(now.End) + r.offset})
		}
		before = now.Discarded
	}
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

// missing returns the number of calls' events that are not recorded. It requires a loss between the recorded events of the
// thread before and after each of them.
//
// Tracers before version 2.15 hide some losses: a thread that loses its processor while it writes an event ends the packet later,
// with a count from before that event, or with 0. So a loss is not required if no packet at that time counted an event. From there to
// the next loss, the thread is doubtful.
func (r *traceOnDisk) missing(t *testing.T, calls truth) (missing int, doubtful map[string][]period) {
	t.Helper()
	doubtful = map[string][]period{}
	gaps, without := map[period]bool{}, 0
	for thread, of := range calls {
		found := r.threads[thread]
		if found == nil {
			found = &entriesAndExits{}
		}
		all := found.both()
		for _, e := range found.without(of, r.offset) {
			missing++
			before, _ := slices.BinarySearch(all, e.from)
			after, _ := slices.BinarySearch(all, e.to)
			if before == 0 || after == len(all) {
				continue // the thread has no call that could get a wrong end
			}
			gap := period{all[before-1], all[after]}
			if gaps[gap] {
				continue
			}
			gaps[gap] = true
			next, _ := slices.BinarySearchFunc(r.losses, gap.from, func(l period, from int64) int { return cmp.Compare(l.to, from) })
			if next < len(r.losses) && r.losses[next].from <= gap.to {
				continue
			}
			if slices.ContainsFunc(r.counted, gap.overlaps) {
				require.Failf(t, "expected a loss beside each missing event", "thread %s, an event in %v, recorded before and after in %v: the losses beside it are %v",
					thread, e, gap, r.losses[max(0, next-1):min(len(r.losses), next+1)])
			}
			without++
			until := int64(math.MaxInt64)
			if next < len(r.losses) {
				until = r.losses[next].from
			}
			doubtful[thread] = append(doubtful[thread], period{gap.from, until})
		}
	}
	if without > 0 {
		t.Logf("the tracer did not count the events in %d of %d gaps", without, len(gaps))
	}
	require.Less(t, 2*without, len(gaps)+1, "gaps that the tracer did not count")
	return missing, doubtful
}

// without returns the periods of a thread's events that are not recorded, in nanoseconds since the Unix epoch.
func (e *entriesAndExits) without(calls []call, offset int64) (missing []period) {
	for _, c := range calls {
		if at := since(c.entered, offset); !at.contains(e.entries) {
			missing = append(missing, at)
		}
		if at := since(c.left, offset); !at.contains(e.exits) {
			missing = append(missing, at)
		}
	}
	return missing
}

// since converts times of the monotonic clock. The end of the last call of a thread is open.
func since(at [2]int64, offset int64) period {
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
