// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/reference"
)

const (
	benchEvents = 900_000
	// benchBuffer is the number of events in a buffer of a tracer, and benchBatch the number of events in a batch of
	// 256 KiB.
	benchBuffer = 400
	benchBatch  = 12_000
)

// program makes the events of a program that is like a build tool: 300 functions on 10 lanes, up to 40 calls deep,
// one exception in 500 events, and a clock of milliseconds.
func program() []happened {
	r := rand.New(rand.NewPCG(1, 2))
	functions := make([]*callevent.Function, 300)
	for i := range functions {
		class := fmt.Sprintf("org.codehaus.plexus.component.repository.Repository%d", i/10)
		functions[i] = &callevent.Function{
			Qualified: fmt.Sprintf("%s.method%d", class, i), Display: fmt.Sprintf("Repository%d.method%d", i/10, i),
			Text: fmt.Sprintf("%s.method%d;1;(Ljava/lang/String;)V", class, i),
		}
	}
	lanes := make([]callevent.Lane, 10)
	stacks := make([][]*callevent.Function, len(lanes))
	for i := range lanes {
		lanes[i] = callevent.Lane{ID: uint64(i), Name: fmt.Sprintf("pool-1-thread-%d", i)}
	}
	events := make([]happened, benchEvents)
	lane := 0
	for i := range events {
		if i%100 == 0 {
			lane = r.IntN(len(lanes))
		}
		e := &events[i]
		*e = happened{sequence: uint64(i), time: testEpoch + int64(i/64)*1_000_000, lane: lanes[lane]}
		stack := stacks[lane]
		switch depth := len(stack); {
		case depth == 0 || depth < 40 && r.IntN(2) == 0:
			e.kind, e.function = callevent.KindEnter, functions[r.IntN(len(functions))]
			stacks[lane] = append(stack, e.function)
		case r.IntN(250) == 0:
			e.kind, e.function, e.exception = callevent.KindThrow, stack[depth-1], "java.lang.IllegalStateException"
		default:
			e.kind, e.function, e.line = callevent.KindExit, stack[depth-1], 100
			stacks[lane] = stack[:depth-1]
		}
	}
	return events
}

// batches packs and unpacks the events in batches.
func batches(b testing.TB, events []happened) (unpacked []*callevent.Batch) {
	for len(events) > 0 {
		n := min(len(events), benchBatch)
		packed, err := pack(delivery{events: events[:n], received: testEpoch + int64(time.Hour)}, 1_000_000)
		if err != nil {
			b.Fatal(err)
		}
		for _, data := range packed {
			batch := &callevent.Batch{}
			if err := batch.Unpack(data); err != nil {
				b.Fatal(err)
			}
			unpacked = append(unpacked, batch)
		}
		events = events[n:]
	}
	return unpacked
}

// connections spreads events over three connections, buffer by buffer, each with its own batches. The third is
// 100,000 events behind the others.
func connections(b *testing.B, events []happened) (order []*callevent.Batch) {
	r := rand.New(rand.NewPCG(3, 4))
	var sent [3][]happened
	for ; len(events) > 0; events = events[min(len(events), benchBuffer):] {
		i := r.IntN(len(sent))
		sent[i] = append(sent[i], events[:min(len(events), benchBuffer)]...)
	}
	type due struct {
		at    uint64
		batch *callevent.Batch
	}
	var all []due
	for i := range sent {
		for _, batch := range batches(b, sent[i]) {
			var first [1]callevent.Event
			batch.Events(first[:], 0)
			at := first[0].Sequence + benchBatch
			if i == 2 {
				at += 100_000
			}
			all = append(all, due{at, batch})
		}
	}
	for len(all) > 0 {
		next := 0
		for i := range all {
			if all[i].at < all[next].at {
				next = i
			}
		}
		order = append(order, all[next].batch)
		all = append(all[:next], all[next+1:]...)
	}
	return order
}

func benchmarkPair(b *testing.B, order []*callevent.Batch, settings Settings) {
	var out Output
	// As in the processor, the output is emptied after some thousands of calls.
	out.MaxCalls, out.Full = 2048, out.ClearCalls
	events, spans, allocs := 0, uint64(0), uint64(0)
	var before, after runtime.MemStats
	for b.Loop() {
		s := NewStream(&settings, testRandom)
		for i, batch := range order {
			// After a fifth of its events a stream has its usual state.
			if i == len(order)/5 {
				runtime.ReadMemStats(&before)
			}
			s.Accept(batch, 0, &out)
			events += batch.Len()
			spans += out.Counters.Finished + out.Counters.LeftOut
			out.Reset()
		}
		runtime.ReadMemStats(&after)
		allocs = after.Mallocs - before.Mallocs
		if s.Waiting() > 0 {
			b.Fatalf("%d events wait", s.Waiting())
		}
	}
	if spans < uint64(events)*2/5 {
		b.Fatalf("%d calls of %d events", spans, events)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(float64(allocs)/(benchEvents*4/5), "allocs/event")
}

// BenchmarkPair accepts batches in order.
func BenchmarkPair(b *testing.B) {
	benchmarkPair(b, batches(b, program()), wide())
}

// BenchmarkPairSums accepts a captured Maven build in order, without sums, and with sums of each kind.
func BenchmarkPairSums(b *testing.B) {
	events := maven(b)
	order := batches(b, events)
	for _, bench := range []struct {
		name string
		sums *callsum.Settings
	}{
		{"none", nil},
		{"functions", &callsum.Settings{}},
		{"paths", &callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 100_000}},
		{"rest", &callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 100}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			settings := wide()
			settings.Sums, settings.SumsOnly = bench.sums, true
			var out Output
			cputime.Events(b, len(events), func() {
				s := NewStream(&settings, nil)
				for _, batch := range order {
					s.Accept(batch, 0, &out)
				}
				s.End(callevent.CauseEnded, &out)
				out.Reset()
			})
		})
	}
}

// maven has the events of a captured Maven build.
func maven(b *testing.B) (events []happened) {
	run, err := reference.Open("../../../testdata/bytefrog/maven.zip")
	if err != nil {
		b.Fatal(err)
	}
	const enter, exit, throw, unwind = 20, 21, 22, 23
	kinds := map[byte]callevent.Kind{
		enter: callevent.KindEnter, exit: callevent.KindExit, throw: callevent.KindThrow, unwind: callevent.KindUnwind,
	}
	functions := map[string]*callevent.Function{}
	for _, e := range run.Events {
		h := happened{sequence: uint64(e.Sequence), time: testEpoch + int64(e.Time)*1_000_000, kind: callevent.KindSkip}
		if kind := kinds[e.Type]; kind != 0 {
			if functions[e.Method] == nil {
				functions[e.Method] = &callevent.Function{Qualified: reference.Qualified(e.Method), Display: reference.Display(e.Method), Text: e.Method}
			}
			h.kind, h.function, h.exception, h.line = kind, functions[e.Method], e.Exception, uint32(e.Line)
			h.lane = callevent.Lane{ID: uint64(e.Thread), Name: fmt.Sprintf("thread-%d", e.Thread)}
		}
		events = append(events, h)
	}
	return events
}

// BenchmarkPairReordered accepts batches of three connections: some 100,000 events wait.
func BenchmarkPairReordered(b *testing.B) {
	benchmarkPair(b, connections(b, program()), wide())
}

// BenchmarkPairLeavingOut leaves all calls out because they are short.
func BenchmarkPairLeavingOut(b *testing.B) {
	settings := wide()
	settings.MinDuration = int64(time.Hour)
	benchmarkPair(b, batches(b, program()), settings)
}

// BenchmarkPairSelecting keeps 1% of the traces, and those with errors.
func BenchmarkPairSelecting(b *testing.B) {
	settings := wide()
	settings.Keep = &Keep{SlowerThan: int64(time.Hour), Threshold: NoThreshold / 100 * 99, MaxBytes: 64 << 20}
	benchmarkPair(b, batches(b, program()), settings)
}

// BenchmarkPairFolding folds repeated calls of a captured Maven build. The calls are then forgotten.
func BenchmarkPairFolding(b *testing.B) {
	order := batches(b, maven(b))
	for _, shorter := range []time.Duration{0, 10 * time.Millisecond} {
		b.Run(shorter.String(), func(b *testing.B) {
			settings := wide()
			settings.Keep = &Keep{SlowerThan: int64(time.Hour), Threshold: NoThreshold, FoldShorterThan: int64(shorter)}
			benchmarkPair(b, order, settings)
		})
	}
}
