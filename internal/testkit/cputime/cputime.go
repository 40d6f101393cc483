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

// Bytes is Events for what handles so many bytes as well, of which it reports how many
// MB it handles in a second of processor time, MB/cpu-s.
func Bytes(b *testing.B, bytes, events int, do func()) {
	b.Helper()
	used := measure(b, do)
	report(b, events, used)
	b.ReportMetric(float64(bytes)*float64(b.N)/used.Seconds()/1e6, "MB/cpu-s")
}

// Page runs do, which makes a page, until the benchmark has measured enough, and reports
// the milliseconds of processor time that one costs: cpu-ms/page.
func Page(b *testing.B, do func()) {
	b.Helper()
	b.ReportMetric(measure(b, do).Seconds()*1000/float64(b.N), "cpu-ms/page")
}

// measure runs do until the benchmark has measured enough, and says what that took.
func measure(b *testing.B, do func()) time.Duration {
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
