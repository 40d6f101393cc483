// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package cputime measures benchmarks in processor time: what other programs do
// on the machine changes that less than the time on the wall, and what other
// goroutines do, the garbage collector's among them, is counted.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Process is the processor time that this process has used so far, in user and
// in system mode.
func Process() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // It cannot fail for these arguments.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Events runs do until the benchmark has measured enough, and reports what one
// event costs, where do handles so many: cpu-ns/event, Mevents/cpu-s, and the
// number itself, events/op.
func Events(b *testing.B, events int, do func()) {
	b.Helper()
	b.ReportAllocs()
	begin := Process()
	for b.Loop() {
		do()
	}
	used := Process() - begin
	total := float64(events) * float64(b.N)
	b.ReportMetric(float64(used.Nanoseconds())/total, "cpu-ns/event")
	b.ReportMetric(total/used.Seconds()/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(events), "events/op")
}
