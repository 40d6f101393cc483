// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor/internal/metadata"
)

// bound is the reason why a stream had to free memory. Its text is the metric's attribute.
type bound string

const (
	boundMaxMiB     bound = "max_mib"
	boundBudget     bound = "memory_budget"
	boundMaxStreams bound = "max_streams"
)

// telemetry has the processor's metrics.
type telemetry struct {
	*metadata.TelemetryBuilder
	causes  [callevent.CauseCount]metric.AddOption
	reasons map[dropReason]metric.AddOption
	bounds  map[bound]metric.AddOption
}

func newTelemetry(builder *metadata.TelemetryBuilder) *telemetry {
	t := &telemetry{TelemetryBuilder: builder, reasons: map[dropReason]metric.AddOption{}, bounds: map[bound]metric.AddOption{}}
	for cause := range t.causes {
		t.causes[cause] = metric.WithAttributeSet(attribute.NewSet(attribute.String("cause", callevent.Cause(cause).String())))
	}
	for _, reason := range []dropReason{refusedForGood, atShutdown, memoryBudget} {
		t.reasons[reason] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", string(reason))))
	}
	for _, by := range []bound{boundMaxMiB, boundBudget, boundMaxStreams} {
		t.bounds[by] = metric.WithAttributeSet(attribute.NewSet(attribute.String("bound", string(by))))
	}
	return t
}

// record adds the counters of a stream.
func (t *telemetry) record(c *pairing.Counters) {
	addTo(t.ProcessorStackPairingEvents, c.Events)
	addTo(t.ProcessorStackPairingSpans, c.Finished)
	addTo(t.ProcessorStackPairingLeftOut, c.LeftOut)
	addTo(t.ProcessorStackPairingOrphans, c.Orphans)
	addTo(t.ProcessorStackPairingLateEvents, c.Late)
	addTo(t.ProcessorStackPairingDuplicateEvents, c.Duplicates)
	addTo(t.ProcessorStackPairingEventsInBreaks, c.InBreak)
	addTo(t.ProcessorStackPairingMissingNumbers, c.Missing)
	addTo(t.ProcessorStackPairingDroppedExceptions, c.DroppedThrows)
	addTo(t.ProcessorStackPairingDroppedAttributes, c.DroppedAttributes)
	addTo(t.ProcessorStackPairingDroppedRenames, c.DroppedRenames)
	ctx := context.Background()
	for cause := range t.causes {
		if n := c.Truncated[cause]; n > 0 {
			t.ProcessorStackPairingTruncatedFrames.Add(ctx, int64(n), t.causes[cause])
		}
		if n := c.Breaks[cause]; n > 0 {
			t.ProcessorStackPairingBreaks.Add(ctx, int64(n), t.causes[cause])
		}
	}
}

// addTo adds n to the counter. Most counters of a step are 0, and those cost no call.
func addTo(counter metric.Int64Counter, n uint64) {
	if n > 0 {
		counter.Add(context.Background(), int64(n))
	}
}

// size is the contents of a stream.
type size struct{ bytes, waiting, frames int64 }

// change adds the difference between two sizes of a stream.
func (t *telemetry) change(before, after size) {
	ctx := context.Background()
	for _, counter := range []struct {
		of     metric.Int64UpDownCounter
		change int64
	}{
		{t.ProcessorStackPairingMemory, after.bytes - before.bytes},
		{t.ProcessorStackPairingWaitingEvents, after.waiting - before.waiting},
		{t.ProcessorStackPairingOpenFrames, after.frames - before.frames},
	} {
		if counter.change != 0 {
			counter.of.Add(ctx, counter.change)
		}
	}
}
