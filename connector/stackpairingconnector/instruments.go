// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/engine"
)

// selectionInstruments are the own metrics of the selection of traces.
func selectionInstruments(b *metadata.TelemetryBuilder) *engine.SelectionInstruments {
	return &engine.SelectionInstruments{
		Traces:         b.ConnectorStackPairingDecidedTraces,
		Calls:          b.ConnectorStackPairingDecidedCalls,
		LimitedCalls:   b.ConnectorStackPairingLimitedCalls,
		RepeatedCalls:  b.ConnectorStackPairingRepeatedCalls,
		EarlyDecisions: b.ConnectorStackPairingEarlyDecisions,
	}
}

// instruments are the own metrics of an engine.
func instruments(b *metadata.TelemetryBuilder) engine.Instruments {
	return engine.Instruments{
		Batches:           b.ConnectorStackPairingBatches,
		Breaks:            b.ConnectorStackPairingBreaks,
		CorruptBatches:    b.ConnectorStackPairingCorruptBatches,
		Delay:             b.ConnectorStackPairingDelay,
		DroppedAttributes: b.ConnectorStackPairingDroppedAttributes,
		DroppedExceptions: b.ConnectorStackPairingDroppedExceptions,
		DroppedRenames:    b.ConnectorStackPairingDroppedRenames,
		DroppedSpans:      b.ConnectorStackPairingDroppedSpans,
		DuplicateEvents:   b.ConnectorStackPairingDuplicateEvents,
		Events:            b.ConnectorStackPairingEvents,
		EventsInBreaks:    b.ConnectorStackPairingEventsInBreaks,
		HeldSpans:         b.ConnectorStackPairingHeldSpans,
		LateEvents:        b.ConnectorStackPairingLateEvents,
		LeftOut:           b.ConnectorStackPairingLeftOut,
		Memory:            b.ConnectorStackPairingMemory,
		MissingNumbers:    b.ConnectorStackPairingMissingNumbers,
		NestedCalls:       b.ConnectorStackPairingNestedCalls,
		OpenFrames:        b.ConnectorStackPairingOpenFrames,
		Orphans:           b.ConnectorStackPairingOrphans,
		RefusedCalls:      b.ConnectorStackPairingRefusedCalls,
		ShedStreams:       b.ConnectorStackPairingShedStreams,
		Spans:             b.ConnectorStackPairingSpans,
		Streams:           b.ConnectorStackPairingStreams,
		TruncatedFrames:   b.ConnectorStackPairingTruncatedFrames,
		WaitingEvents:     b.ConnectorStackPairingWaitingEvents,
	}
}

// The bounds of folded calls: those without room.
const (
	foldedByFunctions = "max_functions"
	foldedByPaths     = "max_paths"
	foldedByBytes     = "max_sums_mib"
)

// folded returns a function that counts and logs calls without room.
func folded(counter metric.Int64Counter, logger *zap.Logger) func(bound string, calls uint64) {
	logger = engine.BurstLogger(logger)
	messages := map[string]string{
		foldedByFunctions: "Metrics have no room for all functions: raise metrics.max_functions, or trace fewer functions",
		foldedByPaths:     "Profiles have no room for all call paths: raise profiles.max_paths, or trace fewer functions",
		foldedByBytes:     "Sums of calls have no more memory: raise limits.max_sums_mib, or trace fewer functions",
	}
	return func(bound string, calls uint64) {
		if calls == 0 {
			return
		}
		counter.Add(context.Background(), int64(calls), metric.WithAttributeSet(attribute.NewSet(attribute.String("bound", bound))))
		logger.Warn(messages[bound], zap.Uint64("calls", calls))
	}
}
