// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// drainAll returns all current results. The text of an event is its field.
func drainAll(t *testing.T, m *merge.Merger) []thing {
	t.Helper()
	var out []thing
	for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
		one := thing{time: m.Time, stream: int(m.Stream.ID)}
		switch kind {
		case merge.Event:
			one.text = string(m.Event.Text(m.Event.Class.Fields.Members[0]))
			require.False(t, m.Late)
		case merge.LossBegin:
			one.text = fmt.Sprintf("%s: begin of %d %s from %d", m.Stream.Name, m.Loss.Count, short(m.Loss), m.Loss.From)
		case merge.LossEnd:
			one.text = fmt.Sprintf("%s: end of %d %s to %d", m.Stream.Name, m.Loss.Count, short(m.Loss), m.Loss.To)
		default:
			continue
		}
		out = append(out, one)
	}
	require.NoError(t, m.Err())
	return out
}

func short(l *merge.Loss) string { return strings.TrimSuffix(l.Cause.String(), " events") }

// allowed moves from known to the result everything that is older than any further input of other streams. It is the
// merge, slow and obvious.
func allowed(known *[]thing, sources []*source) []thing {
	slices.SortStableFunc(*known, func(a, b thing) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.stream, b.stream))
	})
	var out, rest []thing
	for _, one := range *known {
		held := slices.ContainsFunc(sources, func(s *source) bool {
			return !s.ended && s.number != one.stream &&
				(one.time > s.reached() || one.time == s.reached() && one.stream > s.number)
		})
		if held {
			rest = append(rest, one)
		} else {
			out = append(out, one)
		}
	}
	*known = rest
	return out
}

// For any inputs in any order, the results after each input equal those of sorting.
func TestMergingIsSorting(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := merge.New(newTrace(t), merge.Options{})
		var sources []*source
		var known []thing
		passed := uint64(0)
		add := func() { sources = append(sources, newSource(random, m, len(sources), passed)) }
		for range 1 + random.IntN(8) {
			add()
		}
		for said := 0; said < 60; said++ {
			s := sources[random.IntN(len(sources))]
			if s.ended {
				continue
			}
			known = append(known, s.input()...)
			if random.IntN(3) == 0 {
				continue // several inputs before the results are read
			}
			want, got := allowed(&known, sources), drainAll(t, m)
			require.Equal(t, want, got, "seed %d, word %d", seed, said)
			if len(got) > 0 {
				passed = uint64(got[len(got)-1].time)
			}
			if random.IntN(20) == 0 && m.Waiting() == 0 {
				add()
			}
		}
		for _, s := range sources {
			known = append(known, s.finish()...)
		}
		require.Equal(t, allowed(&known, sources), drainAll(t, m), "seed %d, at the end", seed)
		require.Empty(t, known)
		require.Zero(t, m.Waiting())
	}
}

// watch checks the results while streams may be overtaken.
type watch struct {
	t      *testing.T
	m      *merge.Merger
	seed   uint64
	newest int64
	open   map[*merge.Loss]bool
	lagged map[*merge.Stream]bool
	texts  map[uint64][]string
	late   int
}

// results reads the current results and returns their number.
func (w *watch) results() int {
	n := 0
	for kind := w.m.Next(); kind != merge.Nothing; kind = w.m.Next() {
		s := w.m.Stream
		n++
		switch kind {
		case merge.Event:
			w.texts[s.ID] = append(w.texts[s.ID], string(w.m.Event.Text(w.m.Event.Class.Fields.Members[0])))
			if w.m.Late {
				w.late++
				require.Less(w.t, w.m.Time, w.newest, "seed %d", w.seed)
				require.True(w.t, w.lagged[s], "seed %d: a late event outside of an interval", w.seed)
			} else {
				require.GreaterOrEqual(w.t, w.m.Time, w.newest, "seed %d", w.seed)
				w.newest = w.m.Time
			}
		case merge.LossBegin:
			w.newest = max(w.newest, w.m.Time)
			require.False(w.t, w.open[w.m.Loss])
			w.open[w.m.Loss] = true
			w.mark(true)
		case merge.LossEnd:
			w.newest = max(w.newest, w.m.Time)
			require.True(w.t, w.open[w.m.Loss])
			delete(w.open, w.m.Loss)
			w.mark(false)
		}
	}
	require.NoError(w.t, w.m.Err())
	return n
}

func (w *watch) mark(lagged bool) {
	if w.m.Loss.Cause == merge.Overtaken {
		w.lagged[w.m.Stream] = lagged
	}
}

// With any stalls, every event is returned once and in the order of its stream. No event waits longer than the delay.
// Late events are marked and lie inside a loss.
func TestStalledStreamsAreOvertaken(t *testing.T) {
	const delay = time.Second
	late := 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		m := merge.New(newTrace(t), merge.Options{MaxDelay: delay})
		w := &watch{
			t: t, m: m, seed: seed, newest: math.MinInt64, open: map[*merge.Loss]bool{},
			lagged: map[*merge.Stream]bool{}, texts: map[uint64][]string{},
		}
		var sources []*source
		for number := range 2 + random.IntN(5) {
			sources = append(sources, newSource(random, m, number, 0))
		}
		said := make([][]string, len(sources))
		now := time.Duration(0)
		for range 100 {
			// Few streams have frequent input, so that the others stall.
			s := sources[min(random.IntN(len(sources)), random.IntN(len(sources)))]
			if s.ended {
				continue
			}
			for _, one := range s.input() {
				if !strings.Contains(one.text, ":") {
					said[s.number] = append(said[s.number], one.text)
				}
			}
			w.results()
			now += time.Duration(random.Int64N(int64(delay)))
			deadline, awaited := m.Deadline()
			if awaited {
				require.LessOrEqual(t, deadline, now+delay)
			}
			m.Advance(now)
			n := w.results()
			require.False(t, awaited && deadline <= now && n == 0, "seed %d: no result after the deadline", seed)
		}
		for _, s := range sources {
			s.stream.End()
		}
		w.results()
		require.Empty(t, w.open, "seed %d", seed)
		require.Zero(t, m.Waiting())
		for i, texts := range said {
			require.Equal(t, texts, w.texts[uint64(i)], "seed %d, stream %d", seed, i)
		}
		late += w.late
	}
	assert.NotZero(t, late)
}

func TestMergingAllocatesNothingForAnEvent(t *testing.T) {
	const events = 1000
	m := merge.New(newTrace(t), merge.Options{})
	for number := range 3 {
		p := packet{begin: 1}
		for i := range uint64(events) {
			p.events = append(p.events, event{10*i + uint64(number), "text"})
		}
		p.end = 10 * events
		s := m.AddStream(uint64(number), "")
		s.Packet(p.bytes(), nil)
	}
	for range events {
		m.Next()
	}
	assert.Zero(t, testing.AllocsPerRun(events, func() {
		if m.Next() != merge.Event {
			t.Fatal("expected an event")
		}
	}))
}
