// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package cputime measures benchmarks in processor time. Other programs on the machine change it less than the wall
// time, and it includes all goroutines, also those of the garbage collector.
package cputime

import (
	"runtime"
	"testing"
	"time"
)

// Events runs do, which handles a number of events, until the benchmark has measured enough. It reports the cost of one
// event, cpu-ns/event and Mevents/cpu-s, and the number itself, events/op.
func Events(b *testing.B, events int, do func()) {
	b.Helper()
	report(b, events, measure(b, do))
}

// Bytes is Events for a do that handles a number of bytes. It also reports the MB that do handles in a second of
// processor time, MB/cpu-s.
func Bytes(b *testing.B, bytes, events int, do func()) {
	b.Helper()
	used := measure(b, do)
	report(b, events, used)
	b.ReportMetric(float64(bytes)*float64(b.N)/used.Seconds()/1e6, "MB/cpu-s")
}

// Page runs do, which creates a page, until the benchmark has measured enough. It reports the milliseconds of processor
// time for each page, cpu-ms/page.
func Page(b *testing.B, do func()) {
	b.Helper()
	b.ReportMetric(measure(b, do).Seconds()*1000/float64(b.N), "cpu-ms/page")
}

// measure runs do until the benchmark has measured enough, and returns the processor time.
func measure(b *testing.B, do func()) time.Duration {
	b.ReportAllocs()
	return Of(func() {
		for b.Loop() {
			do()
		}
	})
}

// Of returns the processor time of do.
func Of(do func()) time.Duration {
	begin := process()
	do()
	return process() - begin
}

// OfCaller returns the processor time of do in the caller's thread. So the garbage collector's own goroutines are not in
// it, but the work that the collector demands of do is.
func OfCaller(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := thread()
	do()
	return thread() - begin
}

// report reports the processor time of all rounds with a number of events each.
func report(b *testing.B, events int, used time.Duration) {
	total := float64(events) * float64(b.N)
	b.ReportMetric(float64(used.Nanoseconds())/total, "cpu-ns/event")
	b.ReportMetric(total/used.Seconds()/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(events), "events/op")
}
