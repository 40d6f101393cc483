// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package cputime measures benchmarks in processor time: what other programs do
// on the machine changes that less than the time on the wall, and what other
// goroutines do, the garbage collector's among them, is counted.
package cputime

import (
	"testing"
	"time"
)

// Events runs do until the benchmark has measured enough, and reports what one
// event costs, where do handles so many: cpu-ns/event, Mevents/cpu-s, and the
// number itself, events/op.
func Events(b *testing.B, events int, do func()) {
	b.Helper()
	report(b, events, measure(b, do))
}

// Bytes runs do as Events does, where it handles so many bytes, and reports MB/cpu-s:
// millions of bytes for a second of processor time.
func Bytes(b *testing.B, bytes int, do func()) {
	b.Helper()
	used := measure(b, do)
	b.ReportMetric(float64(bytes)*float64(b.N)/used.Seconds()/1e6, "MB/cpu-s")
}

// measure runs do until the benchmark has measured enough, and gives the time it used.
func measure(b *testing.B, do func()) time.Duration {
	b.Helper()
	b.ReportAllocs()
	begin := process()
	for b.Loop() {
		do()
	}
	return process() - begin
}

// report reports what was used for all rounds of so many events each.
func report(b *testing.B, events int, used time.Duration) {
	total := float64(events) * float64(b.N)
	b.ReportMetric(float64(used.Nanoseconds())/total, "cpu-ns/event")
	b.ReportMetric(total/used.Seconds()/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(events), "events/op")
}
