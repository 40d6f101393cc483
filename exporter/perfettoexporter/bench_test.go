// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package perfettoexporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// spansOfMessage is the number of spans of a message of threads.
const spansOfMessage = 4096

// BenchmarkWriteTraces writes the spans of a captured Maven build to files, over and over. The same spans are copied, too.
// Threads are eight at the same time, with exact times, which compress less. Their messages are contiguous in memory, like
// those that a processor just made.
func BenchmarkWriteTraces(b *testing.B) {
	calls := capturedTraces(b, "maven")
	spans := len(eachSpan(calls))
	threads := newCallsOfThreads(100_000)
	b.Run("maven", func(b *testing.B) { benchmarkWrite(b, spans, calls) })
	b.Run("eight_threads", func(b *testing.B) { benchmarkWrite(b, threads.traces.SpanCount(), threads.messages(spansOfMessage)) })
	b.Run("maven_copied", func(b *testing.B) { cputime.CopyTracesOver(b, spans, calls...) })
}

func benchmarkWrite(b *testing.B, spans int, messages []ptrace.Traces) {
	e := started(b, newFile(b), func(c *Config) { c.FlushInterval, c.Rotation.MaxBackups = time.Hour, 1 })
	cputime.Events(b, spans, func() {
		for _, td := range messages {
			require.NoError(b, e.consumeTraces(context.Background(), td))
		}
		// The next round has the same times.
		e.flushed()
		e.writer.Reset()
	})
	b.ReportMetric(float64(e.counts(b)["bytes"])/float64(e.counts(b)["slices"]), "B/slice")
}
