// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/calltree"
	"github.com/callbraid/callbraid/internal/cputime"
)

// target is a page, or a download, of the service shop.
type target struct{ name, path string }

// BenchmarkPages is how long pages take of a service with 100,000 paths.
func BenchmarkPages(b *testing.B) {
	benchmark(b, []target{
		{"service", ""},
		{"flamegraph", "ui/flamegraph"},
		{"top", "ui/top"},
		{"peek", "ui/peek?f=method42$"},
	})
}

// BenchmarkDownloads is how long downloads take of it, and pages that have to look at all
// paths.
func BenchmarkDownloads(b *testing.B) {
	benchmark(b, []target{
		{"flamegraph_of_a_function", "ui/flamegraph?f=method42$"},
		{"top_of_all_paths", "ui/top?h=method42$"},
		{"pprof", "profile.pb.gz"},
		{"folded", "profile.folded"},
		{"speedscope", "profile.speedscope.json"},
	})
}

func benchmark(b *testing.B, targets []target) {
	h := serve(&played{
		services: []calltree.Service{{Name: "shop", Kinds: []calltree.Kind{calltree.Calls}}},
		trees:    map[treeKey]calltree.Snapshot{{"shop", calltree.Calls}: large(100_000)},
	})
	for _, target := range targets {
		b.Run(target.name, func(b *testing.B) {
			b.ReportAllocs()
			var size int
			cputime.Page(b, func() {
				w := get(b, h, "/services/shop/"+target.path)
				require.Equal(b, http.StatusOK, w.Code)
				size = w.Body.Len()
			})
			b.ReportMetric(float64(size)/(1<<20), "MiB")
		})
	}
}
