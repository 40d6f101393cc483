// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// BenchmarkPages measures pages and downloads of a service with 100,000 paths, from a store that
// folded its spans.
func BenchmarkPages(b *testing.B) {
	store := folded(b, large(paths+paths/50))
	foldInto(b, store, changed(large(paths+paths/50)))
	h := serve(store)
	for _, target := range []struct{ name, path string }{
		{"start", "/"},
		{"service", "/services/shop/"},
		{"flamegraph", "/services/shop/ui/flamegraph"},
		{"flamegraph_data", "/services/shop/ui/flamegraph.json?q=method42$"},
		{"flamegraph_of_a_function", "/services/shop/ui/flamegraph?f=method42$"},
		{"top", "/services/shop/ui/top"},
		{"top_50", "/services/shop/ui/top?n=50"},
		{"top_without_a_function", "/services/shop/ui/top?h=method42$"},
		{"peek", "/services/shop/ui/peek?f=method42$"},
		{"pprof", "/services/shop/profile.pb.gz"},
		{"folded", "/services/shop/profile.folded"},
		{"speedscope", "/services/shop/profile.speedscope.json"},
		{"compare", "/compare?before=services/shop/&after=services/shop@2/"},
	} {
		b.Run(target.name, func(b *testing.B) {
			var w discarded
			cputime.Page(b, func() {
				w = discarded{header: http.Header{}, status: http.StatusOK}
				h.ServeHTTP(&w, httptest.NewRequest(http.MethodGet, target.path, nil))
				require.Equal(b, http.StatusOK, w.status)
			})
			b.ReportMetric(float64(w.size)/(1<<20), "MiB")
		})
	}
}

// BenchmarkReadProfile measures how the pprof library reads the profile of the same paths.
func BenchmarkReadProfile(b *testing.B) {
	h := serve(folded(b, large(paths+paths/50)))
	w := kept{discarded: discarded{header: http.Header{}, status: http.StatusOK}}
	h.ServeHTTP(&w, httptest.NewRequest(http.MethodGet, "/services/shop/profile.pb.gz", nil))
	require.Equal(b, http.StatusOK, w.status)
	cputime.Page(b, func() {
		p, err := profile.ParseData(w.body)
		require.NoError(b, err)
		require.NotEmpty(b, p.Sample)
	})
}

// discarded is a response without a reader.
type discarded struct {
	header       http.Header
	status, size int
}

func (d *discarded) Header() http.Header              { return d.header }
func (d *discarded) WriteHeader(status int)           { d.status = status }
func (d *discarded) SetWriteDeadline(time.Time) error { return nil }

func (d *discarded) Write(b []byte) (int, error) {
	d.size += len(b)
	return len(b), nil
}

// kept is a response with its body.
type kept struct {
	discarded
	body []byte
}

func (k *kept) Write(b []byte) (int, error) {
	k.body = append(k.body, b...)
	return len(b), nil
}

// paths is how many a store has at least that pages are measured with.
const paths = 100_000

// folded is a store with the exporter's default settings. It folded a call for each node of a tree,
// callees first, as tracers send them.
func folded(b *testing.B, tree calltree.Snapshot) *calltree.Store {
	b.Helper()
	store := calltree.NewStore(calltree.Settings{
		PendingTimeout: time.Hour, MaxServices: 1000, MaxNodes: 1_000_000, MaxPending: 500_000,
		MaxNameBytes: 1024, MaxNamesBytes: 64 << 20, MaxKeptSpans: 100_000, MaxWindows: 10,
	})
	foldInto(b, store, tree)
	return store
}

// foldInto folds a call for each node of a tree.
func foldInto(b *testing.B, store *calltree.Store, tree calltree.Snapshot) {
	b.Helper()
	spans := spansOf(tree.Nodes)
	slices.Reverse(spans)
	for chunk := range slices.Chunk(spans, 128) {
		store.Fold(calltree.Origin{Service: tree.Service}, chunk)
	}
	s, ok := store.Snapshot(tree.Service, calltree.Calls)
	require.True(b, ok)
	require.GreaterOrEqual(b, len(s.Nodes), paths)
}

// changed is another version of a tree: some functions take longer or have other names, so some paths are only in one.
func changed(tree calltree.Snapshot) calltree.Snapshot {
	tree.Service += VersionMark + "2"
	for i := range tree.Nodes {
		switch n := &tree.Nodes[i]; {
		case i%7 == 0:
			n.Self *= 2
		case i%1000 == 3:
			n.Function += "Renamed"
		}
	}
	return tree
}

// spansOf are calls with the own times of nodes. Each call without a caller has a trace.
func spansOf(nodes []calltree.Node) []calltree.Span {
	times := make([]uint64, len(nodes)) // with their callees
	for i := len(nodes) - 1; i >= 0; i-- {
		times[i] += uint64(nodes[i].Self)
		if parent := nodes[i].Parent; parent >= 0 {
			times[parent] += times[i]
		}
	}
	spans := make([]calltree.Span, len(nodes))
	next := uint64(started.UnixNano())   // the start of the next call without a caller
	begins := make([]uint64, len(nodes)) // by caller: when the next that it calls does
	for i, n := range nodes {
		s := &spans[i]
		s.Function, s.ID = n.Function, spanID(i)
		begin := &next
		if n.Parent >= 0 {
			begin = &begins[n.Parent]
			s.Trace, s.Parent = spans[n.Parent].Trace, spanID(int(n.Parent))
			s.ParentTrace = s.Trace
		} else {
			copy(s.Trace[:], s.ID[:])
		}
		s.Start, s.End = *begin, *begin+times[i]
		*begin, begins[i] = s.End, s.Start
	}
	return spans
}

func spanID(i int) (id calltree.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(i+1))
	return id
}
