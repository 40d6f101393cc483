// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// bound is the reason why a stream had to free memory. Its text is the metric's attribute.
type bound string

const (
	boundMaxMiB     bound = "max_mib"
	boundBudget     bound = "memory_budget"
	boundMaxStreams bound = "max_streams"
)

// Instruments are the own metrics of a component of stack_pairing. Its metadata.yaml describes
// them.
type Instruments struct {
	Batches           metric.Int64Counter
	Breaks            metric.Int64Counter
	CorruptBatches    metric.Int64Counter
	Delay             metric.Float64Histogram
	DroppedAttributes metric.Int64Counter
	DroppedExceptions metric.Int64Counter
	DroppedRenames    metric.Int64Counter
	DroppedSpans      metric.Int64Counter
	DuplicateEvents   metric.Int64Counter
	Events            metric.Int64Counter
	EventsInBreaks    metric.Int64Counter
	HeldSpans         metric.Int64UpDownCounter
	LateEvents        metric.Int64Counter
	LeftOut           metric.Int64Counter
	Memory            metric.Int64UpDownCounter
	MissingNumbers    metric.Int64Counter
	NestedCalls       metric.Int64Counter
	OpenFrames        metric.Int64UpDownCounter
	Orphans           metric.Int64Counter
	RefusedCalls      metric.Int64Counter
	ShedStreams       metric.Int64Counter
	Spans             metric.Int64Counter
	Streams           metric.Int64UpDownCounter
	TruncatedFrames   metric.Int64Counter
	WaitingEvents     metric.Int64UpDownCounter
}

// SelectionInstruments are the own metrics of a component that selects traces.
type SelectionInstruments struct {
	// Traces and Calls have the criterion as attribute.
	Traces, Calls metric.Int64Counter
	// RepeatedCalls are kept calls that are in the span of an earlier one.
	RepeatedCalls metric.Int64Counter
	// LimitedCalls were dropped because of the limit of spans per second. They have the criterion as attribute.
	LimitedCalls metric.Int64Counter
	// EarlyDecisions have the bound and the criterion as attributes.
	EarlyDecisions metric.Int64Counter
}

// telemetry has the metrics of an engine, with the attributes of their points.
type telemetry struct {
	Instruments
	causes  [callevent.CauseCount]metric.AddOption
	reasons map[dropReason]metric.AddOption
	bounds  map[bound]metric.AddOption
	// selection is nil without a selection of traces.
	selection *SelectionInstruments
	criteria  [pairing.CriterionCount]metric.AddOption
	early     [pairing.EarlyCount][pairing.CriterionCount]metric.AddOption
}

func newTelemetry(set *Settings) *telemetry {
	t := &telemetry{Instruments: set.Instruments, selection: set.Selection, reasons: map[dropReason]metric.AddOption{}, bounds: map[bound]metric.AddOption{}}
	for cause := range t.causes {
		t.causes[cause] = withAttribute("cause", callevent.Cause(cause).String())
	}
	for _, reason := range []dropReason{refusedForGood, atShutdown, memoryBudget} {
		t.reasons[reason] = withAttribute("reason", string(reason))
	}
	for criterion := range t.criteria {
		of := attribute.String("criterion", pairing.Criterion(criterion).String())
		t.criteria[criterion] = withAttributes(of)
		for by := range t.early {
			t.early[by][criterion] = withAttributes(of, attribute.String("bound", pairing.Early(by).String()))
		}
	}
	for _, by := range []bound{boundMaxMiB, boundBudget, boundMaxStreams} {
		t.bounds[by] = withAttribute("bound", string(by))
	}
	return t
}

func withAttribute(key, value string) metric.AddOption {
	return withAttributes(attribute.String(key, value))
}

func withAttributes(all ...attribute.KeyValue) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

// record adds the counters of a stream.
func (t *telemetry) record(c *pairing.Counters) {
	addTo(t.Events, c.Events)
	addTo(t.Spans, c.Finished)
	addTo(t.LeftOut, c.LeftOut)
	addTo(t.Orphans, c.Orphans)
	addTo(t.LateEvents, c.Late)
	addTo(t.DuplicateEvents, c.Duplicates)
	addTo(t.EventsInBreaks, c.InBreak)
	addTo(t.MissingNumbers, c.Missing)
	addTo(t.DroppedExceptions, c.DroppedThrows)
	addTo(t.DroppedAttributes, c.DroppedAttributes)
	addTo(t.DroppedRenames, c.DroppedRenames)
	ctx := context.Background()
	if t.selection != nil {
		t.recordSelection(&c.Keep)
	}
	for cause := range t.causes {
		if n := c.Truncated[cause]; n > 0 {
			t.TruncatedFrames.Add(ctx, int64(n), t.causes[cause])
		}
		if n := c.Breaks[cause]; n > 0 {
			t.Breaks.Add(ctx, int64(n), t.causes[cause])
		}
	}
}

// addTo adds n to the counter. Most counters of a step are 0, and those cost no call.
func addTo(counter metric.Int64Counter, n uint64, options ...metric.AddOption) {
	if n > 0 {
		counter.Add(context.Background(), int64(n), options...)
	}
}

// recordSelection adds the decisions about traces.
func (t *telemetry) recordSelection(c *pairing.KeepCounters) {
	for criterion := range t.criteria {
		addTo(t.selection.Traces, c.Traces[criterion], t.criteria[criterion])
		addTo(t.selection.Calls, c.Calls[criterion], t.criteria[criterion])
		addTo(t.selection.LimitedCalls, c.LimitedCalls[criterion], t.criteria[criterion])
		for by := range t.early {
			addTo(t.selection.EarlyDecisions, c.Early[by][criterion], t.early[by][criterion])
		}
	}
	addTo(t.selection.RepeatedCalls, c.RepeatedCalls)
}

// size is the contents of a stream. undecided is the part of bytes that Keep.MaxBytes bounds.
type size struct{ bytes, undecided, waiting, frames int64 }

// under is the part of bytes that a bound counts. Only the memory budget counts undecided calls.
func (s *size) under(by bound) int64 {
	if by == boundMaxMiB {
		return s.bytes - s.undecided
	}
	return s.bytes
}

// change adds the difference between two sizes of a stream.
func (t *telemetry) change(before, after size) {
	ctx := context.Background()
	for _, counter := range []struct {
		of     metric.Int64UpDownCounter
		change int64
	}{
		{t.Memory, after.bytes - before.bytes},
		{t.WaitingEvents, after.waiting - before.waiting},
		{t.OpenFrames, after.frames - before.frames},
	} {
		if counter.change != 0 {
			counter.of.Add(ctx, counter.change)
		}
	}
}
