// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package perfettoexporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// BenchmarkWriteTraces writes the spans of a captured Maven build to files, over and over. The same spans are copied, too.
// Threads are eight at the same time, with exact times, which compress less.
func BenchmarkWriteTraces(b *testing.B) {
	calls := capturedTraces(b, "maven")
	spans := len(eachSpan(calls))
	b.Run("maven", func(b *testing.B) {
		e := started(b, newFile(b), func(c *Config) { c.FlushInterval, c.Rotation.MaxBackups = time.Hour, 1 })
		cputime.Events(b, spans, func() {
			for _, td := range calls {
				require.NoError(b, e.consumeTraces(context.Background(), td))
			}
			// The next round has the same times.
			e.flushed()
			e.writer.Reset()
		})
		b.ReportMetric(float64(e.counts(b)["bytes"])/float64(e.counts(b)["slices"]), "B/slice")
	})
	b.Run("threads", func(b *testing.B) {
		e := started(b, newFile(b), func(c *Config) { c.FlushInterval, c.Rotation.MaxBackups = time.Hour, 1 })
		calls := newCallsOfThreads(100_000)
		cputime.Events(b, calls.traces.SpanCount(), func() {
			require.NoError(b, e.consumeTraces(context.Background(), calls.traces))
			calls.moveOn()
		})
		e.flushed()
		b.ReportMetric(float64(e.counts(b)["bytes"])/float64(e.counts(b)["slices"]), "B/slice")
	})
	b.Run("maven_copied", func(b *testing.B) { cputime.CopyTracesOver(b, spans, calls...) })
}
