// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

			losses := readLosses(t, daemons.Relay.Output)
			recorded := readRecorded(t, daemons.Relay.Output)
			offset := lttng.ClockOffsets(t, daemons.Relay.Output)
			require.Len(t, offset, 1, "traces")
			missing := 0
			for _, p := range programs {
				calls, _ := readTruth(t, p)
				missing += requireLossBesideMissing(t, calls, recorded, losses, offset[0])
			}
			t.Logf("%d events of calls are missing, in %d losses", missing, len(losses))
			assert.Positive(t, missing, "the tracer had room for all: the test needs more calls")
		})
	}
}

// period is a time interval in nanoseconds since the Unix epoch. Both ends belong to it.
type period struct{ from, to int64 }

// readLosses returns the losses of the recorded trace, in the order of their begin.
func readLosses(t *testing.T, directory string) (losses []period) {
	t.Helper()
	files := os.DirFS(directory)
	found, err := ctfdir.Find(files, ".")
	require.NoError(t, err)
	require.Len(t, found, 1, "traces")
	dir, err := ctfdir.Open(files, found[0])
	require.NoError(t, err)
	m := merge.New(dir.Trace, merge.Options{})
	for i, packets := range lttngdata.Packets(t, dir) {
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

// requireLossBesideMissing requires a loss between the recorded events of a thread before and after each event that is not
// recorded. It returns the number of missing events.
func requireLossBesideMissing(t *testing.T, calls truth, recorded map[string]*entriesAndExits, losses []period, offset int64) (missing int) {
	t.Helper()
	var without []string
	for thread, of := range calls {
		found := recorded[thread]
		if found == nil {
			found = &entriesAndExits{}
		}
		all := found.both()
		for _, c := range of {
			for _, e := range []struct {
				kind  string
				at    [2]int64
				times []int64
			}{{"entry", c.entered, found.entries}, {"exit", c.left, found.exits}} {
				from, to := e.at[0]+offset, e.at[1]
				if to != math.MaxInt64 {
					to += offset
				}
				if at, _ := slices.BinarySearch(e.times, from); at < len(e.times) && e.times[at] <= to {
					continue
				}
				missing++
				before, _ := slices.BinarySearch(all, from)
				after, _ := slices.BinarySearch(all, to)
				if before == 0 || after == len(all) {
					continue // the thread has no call that could get a wrong end
				}
				at, _ := slices.BinarySearchFunc(losses, all[before-1], func(l period, from int64) int { return cmp.Compare(l.to, from) })
				if at == len(losses) || losses[at].from > all[after] {
					without = append(without, fmt.Sprintf("thread %s, %s of %s between %d and %d, recorded before and after at %d and %d: the losses beside it are %v",
						thread, e.kind, c.function, from, to, all[before-1], all[after], losses[max(0, at-1):min(len(losses), at+1)]))
				}
			}
		}
	}
	if len(without) > 0 {
		require.Failf(t, "expected a loss beside each missing event", "%d of %d have none, first %s", len(without), missing, without[0])
	}
	return missing
}
