// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stories is the number of random stories in a test: fewer with -short, for the race detector.
func stories(short bool) uint64 {
	if short {
		return 12
	}
	return 150
}

// settings are bounds that nothing reaches.
func settings() Settings {
	return Settings{
		PendingTimeout: time.Hour, MaxServices: 100, MaxNodes: 1_000_000, MaxPending: 1_000_000,
		MaxNameBytes: 1024, MaxNamesBytes: 64 << 20, MaxKeptSpans: 100, MaxWindows: 10,
	}
}

func traceID(n int) (id TraceID) { binary.BigEndian.PutUint64(id[8:], uint64(n)+1); return id }
func spanID(n int) (id SpanID)   { binary.BigEndian.PutUint64(id[:], uint64(n)+1); return id }

// randomSpans makes spans of calls that call each other, in several traces, some of which are cut,
// and several services, some of which share spans. They have few functions, so that many have the
// same path. Children may foldNext longer than their parents. Each span has its service.
func randomSpans(random *rand.Rand) (spans []modelSpan) {
	number, services, names := 1+random.IntN(150), 1+random.IntN(3), 1+random.IntN(5)
	reach := 1 + random.IntN(number)
	remote := map[modelKey]bool{} // for spans of one ID in one service, the order decides which one callees are below
	for i := range number {
		span := modelSpan{service: fmt.Sprint("service ", random.IntN(services))}
		span.Trace, span.ID = traceID(i/50), spanID(i)
		span.Function = fmt.Sprint("f", random.IntN(names))
		span.Start = 1 + random.Uint64N(100)
		span.End = span.Start + random.Uint64N(100)
		span.Error, span.Truncated = random.IntN(5) == 0, random.IntN(10) == 0
		if random.IntN(5) == 0 {
			span.Calls, span.CallsTime = 2+random.Uint64N(9), random.Int64N(50)
		}
		span.HasThread, span.Thread = random.IntN(2) == 0, random.Int64N(4)
		if parent := i - 1 - random.IntN(reach); parent >= 0 {
			p := spans[parent]
			span.ParentTrace, span.Parent = p.Trace, p.ID
			if random.IntN(4) > 0 {
				span.service = p.service
			}
			span.Remote = random.IntN(20) == 0
			if p.service != span.service && random.IntN(3) == 0 {
				// A server with the span of its client.
				span.Trace, span.ID, span.ParentTrace, span.Parent = p.Trace, p.ID, p.ParentTrace, p.Parent
			}
		}
		key := modelKey{span.service, span.key()}
		if is, ok := remote[key]; ok {
			span.Remote = is
		}
		remote[key] = span.Remote
		spans = append(spans, span)
	}
	return spans
}

// story is a list of spans that arrive in some order at a store and a model.
type story struct {
	t      *testing.T
	random *rand.Rand
	store  *Store
	model  *model
	rest   []modelSpan
	now    time.Time
}

func newStory(t *testing.T, seed uint64, s Settings) *story {
	st := &story{t: t, random: rand.New(rand.NewPCG(seed, 1)), model: newModel(), now: time.Unix(1_700_000_000, 0)}
	s.Now = func() time.Time { return st.now }
	st.store = NewStore(s)
	st.rest = randomSpans(st.random)
	switch st.random.IntN(4) {
	case 0: // as they are: parents first
	case 1: // children first
		for i, j := 0, len(st.rest)-1; i < j; i, j = i+1, j-1 {
			st.rest[i], st.rest[j] = st.rest[j], st.rest[i]
		}
	default:
		st.random.Shuffle(len(st.rest), func(i, j int) { st.rest[i], st.rest[j] = st.rest[j], st.rest[i] })
	}
	// Some spans never arrive, and some arrive twice.
	st.rest = st.rest[st.random.IntN(1+len(st.rest)/5):]
	for range st.random.IntN(3) {
		st.rest = append(st.rest, st.rest[st.random.IntN(len(st.rest))])
	}
	return st
}

// foldNext folds the next spans of one service.
func (st *story) foldNext() {
	var batch []Span
	service := st.rest[0].service
	for most := 1 + st.random.IntN(20); len(st.rest) > 0 && len(batch) < most && st.rest[0].service == service; st.rest = st.rest[1:] {
		batch = append(batch, st.rest[0].Span)
		st.model.add(service, st.rest[0].Span)
	}
	st.store.Fold(Origin{Service: service, Instance: []string{"", "one", "f0"}[st.random.IntN(3)]}, batch)
	if st.random.IntN(10) == 0 {
		st.store.room.compact(func(*tree) bool { return true })
	}
	if st.random.IntN(5) == 0 {
		check(st.t, st.store)
	}
}

func (st *story) services() []string { return []string{"service 0", "service 1", "service 2"} }

// For any order of calls and callers: at every moment the tree is that of all spans that
// arrived.
func TestTheTreeIsThatOfAllSpansThatArrived(t *testing.T) {
	for seed := range stories(testing.Short()) {
		st := newStory(t, seed, settings())
		for len(st.rest) > 0 {
			st.foldNext()
			if len(st.rest) > 0 && st.random.IntN(10) > 0 {
				continue
			}
			for _, service := range st.services() {
				want := st.model.tree(service, 0)
				snapshot, ok := st.store.Snapshot(service, Calls)
				require.Equal(t, len(want) > 0, ok)
				require.Equal(t, lines(want), lines(paths(t, snapshot.Nodes)), "seed %d, %s", seed, service)
			}
		}
		counters := st.store.Counters()
		require.EqualValues(t, len(st.model.spans), counters.Spans)
		require.Zero(t, counters.ParentsNotSeen)
	}
}

// A window has the calls that arrived in it, at the paths of its end. So has a tree after a reset.
// Own times do not include callees, whenever they arrived.
func TestAWindowAndATreeAfterAResetHaveTheCallsSinceThen(t *testing.T) {
	for seed := range stories(testing.Short()) {
		st := newStory(t, seed, settings())
		for range st.random.IntN(1 + len(st.rest)) {
			if len(st.rest) > 1 {
				st.foldNext()
			}
		}
		const service = "service 0"
		from := len(st.model.spans)
		tree, window, err := st.store.openWindow(service, Calls)
		if err != nil {
			require.ErrorIs(t, err, ErrNotThere)
			continue
		}
		isReset := st.random.IntN(2) == 0
		if isReset {
			st.store.Reset(service)
			check(t, st.store)
		}
		for range st.random.IntN(1 + len(st.rest)) {
			if len(st.rest) > 0 {
				st.foldNext()
			}
		}
		copied := st.store.copyAndCloseWindow(tree, window)
		showWindow(copied, window.values)
		want := lines(st.model.tree(service, from))
		require.Equal(t, want, lines(paths(t, snapshotNodes(copied))), "seed %d", seed)
		if isReset {
			snapshot, _ := st.store.Snapshot(service, Calls)
			require.Equal(t, want, lines(paths(t, snapshot.Nodes)), "seed %d", seed)
		}
	}
}

// With too little room the store folds paths and gives up callers, but loses no call, and its
// contents stay within the bounds.
func TestNoCallIsLostIfThereIsTooLittleRoom(t *testing.T) {
	folded, notSeen, silent := uint64(0), uint64(0), uint64(0)
	yielded, shed := uint64(0), uint64(0)
	for seed := range stories(testing.Short()) {
		s := settings()
		random := rand.New(rand.NewPCG(seed, 2))
		s.MaxNodes, s.MaxPending, s.MaxServices, s.MaxKeptSpans = 10+random.IntN(30), 4+random.IntN(60), 1+random.IntN(3), random.IntN(30)
		s.PendingTimeout = time.Duration(1+random.IntN(20)) * time.Second
		if random.IntN(4) == 0 {
			s.MaxNamesBytes = 6 * bytesOfFunction
		}
		if random.IntN(3) == 0 {
			limit := int64(emptyStoreBytes + random.IntN(20_000))
			s.Hold = func(bytes int64) int64 { return max(0, bytes-limit) }
		}
		st := newStory(t, seed, s)
		// All spans have the same number of calls.
		repeated := 1 + seed%2*2
		for i := range st.rest {
			st.rest[i].Calls = repeated
		}
		calls, errors, own := map[string]uint64{}, uint64(0), int64(0)
		for len(st.rest) > 0 {
			st.now = st.now.Add(time.Duration(random.IntN(3)) * time.Second)
			st.foldNext()
			// A span makes two nodes at most, and so does a caller that is given up.
			require.LessOrEqual(t, st.store.Usage().Nodes, s.MaxNodes+20*4)
		}
		for _, service := range st.store.Services() {
			snapshot, ok := st.store.Snapshot(service.Name, Calls)
			require.True(t, ok)
			for _, n := range snapshot.Nodes {
				calls[service.Name] += n.Calls
				errors += n.Errors
				own += n.Self
				require.GreaterOrEqual(t, n.Self, int64(0))
				require.GreaterOrEqual(t, n.Total, int64(0))
			}
			require.Equal(t, service.Calls, calls[service.Name])
		}
		check(st.t, st.store)
		counters := st.store.Counters()
		if counters.SilentServices > 0 {
			silent++ // its calls were evicted with it
			continue
		}
		sum := uint64(0)
		for _, n := range calls {
			sum += n
		}
		require.Equal(t, counters.Spans*repeated, sum, "seed %d", seed)
		// Services that share a tree have one span of an ID.
		require.GreaterOrEqual(t, counters.Spans, uint64(len(st.model.seen)))
		folded += counters.FoldedPaths
		yielded, shed = yielded+counters.YieldedServices, shed+counters.Shed.Paths
		notSeen += counters.ParentsNotSeen.Limit + counters.ParentsNotSeen.Timeout
	}
	assert.Positive(t, folded)
	assert.Positive(t, notSeen)
	assert.Positive(t, yielded)
	assert.Positive(t, shed)
	assert.Less(t, silent, stories(testing.Short())/5)
}
