// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started is when the trees of the tests begin.
var started = time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)

// played are trees as a test wants them.
type played struct {
	mu       sync.Mutex
	services []calltree.Service
	counters calltree.Counters
	trees    map[treeKey]calltree.Snapshot
	traces   map[calltree.TraceID][]calltree.KeptSpan
	resets   []string
	// collect answers Collect, in the turn.
	collect func(context.Context, string, calltree.Kind, time.Duration) (calltree.Snapshot, error)
}

type treeKey struct {
	service string
	kind    calltree.Kind
}

func (p *played) Services() []calltree.Service { return p.services }

func (p *played) Paths(service string, kind calltree.Kind) int {
	return len(p.trees[treeKey{service, kind}].Nodes)
}

func (p *played) Usage() calltree.Usage {
	return calltree.Usage{Services: len(p.services), Kept: len(p.traces)}
}

func (p *played) Counters() calltree.Counters { return p.counters }

func (p *played) Snapshot(service string, kind calltree.Kind) (calltree.Snapshot, bool) {
	s, ok := p.trees[treeKey{service, kind}]
	return s, ok
}

func (p *played) Collect(ctx context.Context, service string, kind calltree.Kind, d time.Duration, turn func(context.Context) error) (calltree.Snapshot, error) {
	if err := turn(ctx); err != nil {
		return calltree.Snapshot{}, err
	}
	return p.collect(ctx, service, kind, d)
}

func (p *played) Reset(service string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resets = append(p.resets, service)
	_, ok := p.trees[treeKey{service, calltree.Calls}]
	return ok
}

func (p *played) ResetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resets = append(p.resets, "all of them")
}

func (p *played) Traces(string) []calltree.TraceSummary {
	var all []calltree.TraceSummary
	for id, spans := range p.traces {
		all = append(all, calltree.TraceSummary{
			ID: id, Root: spans[0].Function, Spans: len(spans), Dropped: 7,
			Start: time.Unix(0, spans[0].Start), End: time.Unix(0, spans[0].End),
		})
	}
	return all
}

func (p *played) Trace(id calltree.TraceID) ([]calltree.KeptSpan, bool) {
	spans, ok := p.traces[id]
	return spans, ok
}

// playing are the trees of a service, by its and its functions' names.
func playing(service, function string) *played {
	kind := calltree.Kind{Type: function, Unit: function + "s"}
	p := &played{
		services: []calltree.Service{{
			Name: service, Threads: 3, ThreadsMore: true, Calls: 1234567, Errors: 4, From: started, Rate: 25.4,
			LastSeen: started.Add(time.Hour), Kinds: []calltree.Kind{calltree.Calls, kind},
		}},
		trees: map[treeKey]calltree.Snapshot{
			{service, calltree.Calls}: shop(service, calltree.Calls, function),
			{service, kind}:           shop(service, kind, function),
		},
		traces: map[calltree.TraceID][]calltree.KeptSpan{
			{1}: {{ID: calltree.SpanID{1}, Service: service, Function: function, File: function, ThreadName: function, Start: started.UnixNano(), End: started.Add(time.Millisecond).UnixNano()}},
		},
	}
	p.collect = func(_ context.Context, service string, kind calltree.Kind, d time.Duration) (calltree.Snapshot, error) {
		s, ok := p.trees[treeKey{service, kind}]
		if !ok {
			return s, calltree.ErrNotThere
		}
		s.From, s.To = started, started.Add(d)
		return s, nil
	}
	return p
}

// shop is a tree of calls in which a function is the second of three on a stack.
func shop(service string, kind calltree.Kind, function string) calltree.Snapshot {
	return calltree.Snapshot{
		Service: service, Kind: kind, From: started, To: started.Add(10 * time.Second),
		Nodes: []calltree.Node{
			{Parent: -1, Function: "Main.main", Calls: 1, Total: 900_000, Self: 100_000},
			{Parent: 0, Function: function, File: function, Line: 40, Calls: 3, Errors: 1, Total: 500_000, Self: 300_000},
			{Parent: 1, Function: "Price.of", Calls: 6, Total: 200_000, Self: 200_000},
			{Parent: 0, Function: "Price.of", Calls: 2, Total: 300_000, Self: 300_000},
			{Parent: -1, Function: calltree.MissingParent.String(), Mark: calltree.MissingParent, Calls: 1, Total: 50_000, Self: 50_000},
		},
	}
}

// serve is a handler of the trees.
const (
	keptWindows     = 3
	keptWindowNodes = 1000
)

func serve(trees Trees) *Handler {
	return New(trees, Options{Logger: zap.NewNop(), MaxKeptWindows: keptWindows, MaxKeptWindowNodes: keptWindowNodes})
}

// get asks the handler.
func get(t testing.TB, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(connection{w}, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// connection is a recorder that accepts all data immediately, so that its deadlines never pass.
type connection struct{ *httptest.ResponseRecorder }

func (connection) SetWriteDeadline(time.Time) error { return nil }

// page asks the handler for a page that is there.
func page(t testing.TB, h http.Handler, target string) string {
	t.Helper()
	w := get(t, h, target)
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", target, w.Body)
	return w.Body.String()
}

// large is a tree of n paths with stacks of up to 40 functions of 3,000.
func large(n int) calltree.Snapshot {
	r := rand.New(rand.NewPCG(1, 2))
	s := calltree.Snapshot{Service: "shop", From: started, To: started.Add(time.Minute)}
	var open []int32
	for i := range n {
		for len(open) > 0 && (len(open) == 40 || r.IntN(100) < 45) {
			open = open[:len(open)-1]
		}
		node := calltree.Node{Parent: -1, Calls: 1 + r.Uint64N(1000), Self: int64(r.ExpFloat64() * 1e6)}
		if len(open) > 0 {
			node.Parent = open[len(open)-1]
		}
		function := r.IntN(3000)
		node.Function = fmt.Sprintf("com.example.shop.package%d.Class%d.method%d", function%17, function%310, function)
		open = append(open, int32(i))
		s.Nodes = append(s.Nodes, node)
	}
	return s
}
