// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/engine"
)

// selectionInstruments are the own metrics of the selection of traces.
func selectionInstruments(b *metadata.TelemetryBuilder) *engine.SelectionInstruments {
	return &engine.SelectionInstruments{
		Traces:         b.ConnectorStackPairingDecidedTraces,
		Calls:          b.ConnectorStackPairingDecidedCalls,
		LimitedCalls:   b.ConnectorStackPairingLimitedCalls,
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
