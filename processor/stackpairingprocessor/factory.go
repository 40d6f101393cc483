// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/callbraid/callbraid/internal/call/engine"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor/internal/metadata"
)

// NewFactory returns the factory of the stack_pairing processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		func() component.Config { return engine.DefaultConfig() },
		processor.WithTraces(createTraces, metadata.TracesStability),
	)
}

// Config is the configuration of the processor.
type Config = engine.Config

// The parts of Config.
type (
	PairingConfig        = engine.PairingConfig
	ReorderConfig        = engine.ReorderConfig
	SpanAttributesConfig = engine.SpanAttributesConfig
	LimitsConfig         = engine.LimitsConfig
)

func createTraces(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	builder, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindProcessor, set.ID, set.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	return engine.New(engine.Settings{ID: set.ID, Logger: set.Logger, Instruments: instruments(builder), Next: next}, cfg.(*Config))
}

func instruments(b *metadata.TelemetryBuilder) engine.Instruments {
	return engine.Instruments{
		Batches:           b.ProcessorStackPairingBatches,
		Breaks:            b.ProcessorStackPairingBreaks,
		CorruptBatches:    b.ProcessorStackPairingCorruptBatches,
		Delay:             b.ProcessorStackPairingDelay,
		DroppedAttributes: b.ProcessorStackPairingDroppedAttributes,
		DroppedExceptions: b.ProcessorStackPairingDroppedExceptions,
		DroppedRenames:    b.ProcessorStackPairingDroppedRenames,
		DroppedSpans:      b.ProcessorStackPairingDroppedSpans,
		DuplicateEvents:   b.ProcessorStackPairingDuplicateEvents,
		Events:            b.ProcessorStackPairingEvents,
		EventsInBreaks:    b.ProcessorStackPairingEventsInBreaks,
		HeldSpans:         b.ProcessorStackPairingHeldSpans,
		LateEvents:        b.ProcessorStackPairingLateEvents,
		LeftOut:           b.ProcessorStackPairingLeftOut,
		Memory:            b.ProcessorStackPairingMemory,
		MissingNumbers:    b.ProcessorStackPairingMissingNumbers,
		NestedCalls:       b.ProcessorStackPairingNestedCalls,
		OpenFrames:        b.ProcessorStackPairingOpenFrames,
		Orphans:           b.ProcessorStackPairingOrphans,
		RefusedCalls:      b.ProcessorStackPairingRefusedCalls,
		ShedStreams:       b.ProcessorStackPairingShedStreams,
		Spans:             b.ProcessorStackPairingSpans,
		Streams:           b.ProcessorStackPairingStreams,
		TruncatedFrames:   b.ProcessorStackPairingTruncatedFrames,
		WaitingEvents:     b.ProcessorStackPairingWaitingEvents,
	}
}
