// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"testing"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// BenchmarkEvents reads every field of every event of a capture.
func BenchmarkEvents(b *testing.B) {
	for _, name := range []string{"cyg1", "tp1", "jul1", "julctx"} {
		b.Run(name, func(b *testing.B) {
			dir := lttngdata.OpenTrace(b, lttngdata.OpenCapture(b, name))
			var readers []*ctf.Reader
			streams := lttngdata.Packets(b, dir)
			events, size := 0, 0
			for _, packets := range streams {
				readAll(b, dir.Trace, packets, func(*ctf.Reader) { events++ })
				for _, packet := range packets {
					size += len(packet)
				}
				readers = append(readers, ctf.NewReader(dir.Trace))
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for i, packets := range streams {
					r := readers[i]
					for _, packet := range packets {
						if err := r.Begin(packet); err != nil {
							b.Fatal(err)
						}
						for r.Next() {
						}
						if r.Err() != nil {
							b.Fatal(r.Err())
						}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
		})
	}
}
