// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"testing"

	"github.com/callbraid/callbraid/internal/calltree"
)

// BenchmarkPages is how long pages and downloads take of a service with 100,000 paths.
func BenchmarkPages(b *testing.B) {
	h := serve(&played{
		services: []calltree.Service{{Name: "shop", Kinds: []calltree.Kind{calltree.Calls}}},
		trees:    map[treeKey]calltree.Snapshot{{"shop", calltree.Calls}: large(100_000)},
	})
	for _, target := range []string{
		"", "services/shop/", "services/shop/ui/flamegraph", "services/shop/ui/flamegraph?f=method42", "services/shop/ui/top",
		"services/shop/ui/peek", "services/shop/ui/peek?f=method42",
		"services/shop/profile.pb.gz", "services/shop/profile.folded", "services/shop/profile.speedscope.json",
	} {
		b.Run(target, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.ReportMetric(float64(len(page(b, h, "/"+target))), "bytes")
			}
		})
	}
}
