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

// Yardsticks are work with code that this project did not write. A claim is a ratio to a yardstick that is measured in
// the same run, so it holds on fast and slow machines.

// Sum computes Adler-32 of these bytes with the standard library, each byte once, and reports the metrics of Bytes. The
// bytes contain so many events. It is the yardstick of decoders: it is compiled from Go, reads the same memory, and
// needs one or two processor cycles for a byte.
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

// CopyTraces copies spans, `events` in all, with the pdata library. It is the yardstick of code that creates or reads
// spans.
func CopyTraces(b *testing.B, events int, all ...ptrace.Traces) {
	b.Helper()
	warm(b, events, func() {
		for _, td := range all {
			td.CopyTo(ptrace.NewTraces())
		}
	})
}

// CopyTracesOver is CopyTraces with copies that overwrite those of the previous round. It is the yardstick of code that
// reads spans without garbage.
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

// CopyLogs is CopyTraces for log records. It copies them `times` times.
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

// warm is Events after a first round that touches all memory.
func warm(b *testing.B, events int, do func()) {
	b.Helper()
	do()
	runtime.GC()
	Events(b, events, do)
}
