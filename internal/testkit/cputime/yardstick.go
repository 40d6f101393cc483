// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package cputime

import (
	"hash/adler32"
	"runtime"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Yardsticks are work that this project did not write. A claim is a ratio to one of them that
// is measured in the same run, so it holds on fast and slow machines.

// Sum adds up these bytes, each once, with the standard library's Adler-32, and reports what
// Bytes does. They hold so many events. It is the yardstick of decoders: it is compiled from Go,
// reads the same memory, and takes a processor cycle or two for a byte.
func Sum(b *testing.B, events int, data ...[]byte) {
	b.Helper()
	size := 0
	for _, d := range data {
		size += len(d)
	}
	total := uint32(0)
	Bytes(b, size, events, func() {
		for _, d := range data {
			total += adler32.Checksum(d)
		}
	})
	if total == 0 {
		b.Fatal("expected a sum")
	}
}

// CopyTraces copies spans with the pdata library, events in all. It is the yardstick of what
// makes spans, or reads them.
func CopyTraces(b *testing.B, events int, all ...ptrace.Traces) {
	b.Helper()
	warm(b, events, func() {
		for _, td := range all {
			td.CopyTo(ptrace.NewTraces())
		}
	})
}

// CopyTracesOver is CopyTraces where copies go over those of the round before. It is the
// yardstick of what reads spans and makes no garbage.
func CopyTracesOver(b *testing.B, events int, all ...ptrace.Traces) {
	b.Helper()
	copies := make([]ptrace.Traces, len(all))
	for i := range copies {
		copies[i] = ptrace.NewTraces()
	}
	warm(b, events, func() {
		for i, td := range all {
			td.CopyTo(copies[i])
		}
	})
}

// CopyLogs is CopyTraces for log records, which are copied so many times.
func CopyLogs(b *testing.B, events, times int, ld plog.Logs) {
	b.Helper()
	warm(b, events, func() {
		for range times {
			ld.CopyTo(plog.NewLogs())
		}
	})
}

// CopyMetrics is CopyTraces for metrics.
func CopyMetrics(b *testing.B, events int, md pmetric.Metrics) {
	b.Helper()
	warm(b, events, func() { md.CopyTo(pmetric.NewMetrics()) })
}

// warm is Events behind a first round, which touches memory for the first time.
func warm(b *testing.B, events int, do func()) {
	b.Helper()
	do()
	runtime.GC()
	Events(b, events, do)
}
