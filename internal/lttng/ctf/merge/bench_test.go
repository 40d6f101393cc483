// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// BenchmarkCapture merges the events of a capture, whose packets are small.
func BenchmarkCapture(b *testing.B) {
	for _, name := range []string{"cyg1", "tp1", "jul1"} {
		b.Run(name, func(b *testing.B) {
			dir := lttngdata.OpenTrace(b, lttngdata.OpenCapture(b, name))
			benchmark(b, dir.Trace, lttngdata.Packets(b, dir))
		})
	}
}

// BenchmarkStreams merges streams whose events are so close together that almost every event belongs to another
// stream than the previous one.
func BenchmarkStreams(b *testing.B) {
	const packets, events = 50, 1000
	for _, n := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			streams := make([][][]byte, n)
			for i := range streams {
				now := uint64(0)
				for sequence := range uint64(packets) {
					p := packet{sequence: sequence, begin: now}
					for range events {
						now += random.Uint64N(2000)
						p.events = append(p.events, event{now, "text"})
					}
					p.end = now
					streams[i] = append(streams[i], p.bytes())
				}
			}
			benchmark(b, newTrace(b), streams)
		})
	}
}

// benchmark merges streams of packets, with a new Merger each time.
func benchmark(b *testing.B, trace *ctf.Trace, streams [][][]byte) {
	merged := func() (events int) {
		m := merge.New(trace, merge.Options{})
		for i, packets := range streams {
			s := m.AddStream(uint64(i), "")
			for _, packet := range packets {
				s.Packet(packet, nil)
			}
			s.End()
		}
		for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
			if kind == merge.Event {
				events++
			}
		}
		if m.Err() != nil {
			b.Fatal(m.Err())
		}
		return events
	}
	cputime.Events(b, merged(), func() { merged() })
}
