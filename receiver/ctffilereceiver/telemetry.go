// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry counts the work of the receiver, for the operator of the collector.
package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
)

// Telemetry has the receiver's own metrics. No method is called for each event. Any goroutine may use
// it.
type Telemetry struct {
	builder *metadata.TelemetryBuilder
	causes  [callevent.CauseCount]metric.MeasurementOption
}

// New returns the metrics of a receiver. progress returns the bytes that were found and read.
func New(settings component.TelemetrySettings, progress func() (found, read int64)) (*Telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		builder.RegisterReceiverCtfFileBytesFoundCallback(func(_ context.Context, o metric.Int64Observer) error {
			found, _ := progress()
			o.Observe(found)
			return nil
		}),
		builder.RegisterReceiverCtfFileBytesReadCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, read := progress()
			o.Observe(read)
			return nil
		}),
	)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{builder: builder}
	for cause := range t.causes {
		t.causes[cause] = receiverkit.With("cause", callevent.Cause(cause).String())
	}
	return t, nil
}

var background = context.Background()

// Shutdown ends the metrics.
func (t *Telemetry) Shutdown() { t.builder.Shutdown() }

// Sessions counts traces that are read.
func (t *Telemetry) Sessions(change int64) {
	t.builder.ReceiverCtfFileTraces.Add(background, change)
}

// SessionDetached counts a trace that was closed for a while.
func (t *Telemetry) SessionDetached(reason string) {
	t.builder.ReceiverCtfFileTracesClosed.Add(background, 1, receiverkit.With("reason", reason))
}

// Streams counts streams that began and did not end.
func (t *Telemetry) Streams(change int64) {
	t.builder.ReceiverCtfFileStreams.Add(background, change)
}

// StreamCut and Cleared do nothing: only relay daemons drop data that was not read.
func (t *Telemetry) StreamCut() {}
func (t *Telemetry) Cleared()   {}

// PacketDamaged counts a packet that cannot be read.
func (t *Telemetry) PacketDamaged() { t.builder.ReceiverCtfFilePacketsDamaged.Add(background, 1) }

// TraceRead counts a trace that was read to its end, TraceFailed one that was given up.
func (t *Telemetry) TraceRead()   { t.builder.ReceiverCtfFileTracesRead.Add(background, 1) }
func (t *Telemetry) TraceFailed() { t.builder.ReceiverCtfFileTracesFailed.Add(background, 1) }

// CallStreams counts call streams that began and did not end.
func (t *Telemetry) CallStreams(change int64) {
	t.builder.ReceiverCtfFileProcesses.Add(background, change)
}

// ConnectionFailed counts a failure to read the files of a trace.
func (t *Telemetry) ConnectionFailed() {
	t.builder.ReceiverCtfFileReadFailures.Add(background, 1)
}

// BadData counts data of a kind that could not be read.
func (t *Telemetry) BadData(what string) {
	t.builder.ReceiverCtfFileBadData.Add(background, 1, receiverkit.With("what", what))
}

// Received counts packets and bytes.
func (t *Telemetry) Received(packets, bytes int64) {
	receiverkit.Count(t.builder.ReceiverCtfFilePackets, packets)
	t.builder.ReceiverCtfFileBytes.Add(background, bytes)
}

// EventsRead counts events.
func (t *Telemetry) EventsRead(events int64) {
	receiverkit.Count(t.builder.ReceiverCtfFileEvents, events)
}

// EventsLate counts events that are older than an event before them.
func (t *Telemetry) EventsLate(events int64) {
	receiverkit.Count(t.builder.ReceiverCtfFileEventsLate, events)
}

// EventsDiscarded counts events that the tracer discarded.
func (t *Telemetry) EventsDiscarded(events int64) {
	receiverkit.Count(t.builder.ReceiverCtfFileEventsDiscarded, events)
}

// PacketsLost counts packets that are not in the files.
func (t *Telemetry) PacketsLost(packets int64) {
	receiverkit.Count(t.builder.ReceiverCtfFilePacketsLost, packets)
}

// CallEventsPacked counts call events in batches.
func (t *Telemetry) CallEventsPacked(events int64) {
	t.builder.ReceiverCtfFileCallEvents.Add(background, events)
}

// Break counts breaks of the call streams of a trace.
func (t *Telemetry) Break(cause callevent.Cause) {
	t.builder.ReceiverCtfFileBreaks.Add(background, 1, t.causes[cause])
}

// NamesForgotten counts names that had no room.
func (t *Telemetry) NamesForgotten(n int64) {
	t.builder.ReceiverCtfFileNamesForgotten.Add(background, n)
}

// SymbolFileRefused counts an object file, or a part of it, that was not read because of the memory budget.
func (t *Telemetry) SymbolFileRefused() {
	t.builder.ReceiverCtfFileSymbolFilesRefused.Add(background, 1)
}

// ObjectRefused counts an object that had no room.
func (t *Telemetry) ObjectRefused() { t.builder.ReceiverCtfFileObjectsRefused.Add(background, 1) }

// NameUnknown counts a function without a name.
func (t *Telemetry) NameUnknown() { t.builder.ReceiverCtfFileNamesUnknown.Add(background, 1) }

// LineUnknown counts a function with a name and without a source line.
func (t *Telemetry) LineUnknown(reason string) {
	t.builder.ReceiverCtfFileLinesUnknown.Add(background, 1, receiverkit.With("reason", reason))
}

// BatchAccepted counts a batch that the pipeline accepted.
func (t *Telemetry) BatchAccepted() { t.builder.ReceiverCtfFileBatches.Add(background, 1) }

// BatchDropped counts a batch that was dropped, and its events.
func (t *Telemetry) BatchDropped(events int, reason string) {
	t.builder.ReceiverCtfFileBatchesDropped.Add(background, 1, receiverkit.With("reason", reason))
	t.CallEventsDropped(int64(events), reason)
}

// CallEventsDropped counts call events that were dropped.
func (t *Telemetry) CallEventsDropped(events int64, reason string) {
	t.builder.ReceiverCtfFileCallEventsDropped.Add(background, events, receiverkit.With("reason", reason))
}

// CallValuesCut counts arguments and return values that were cut.
func (t *Telemetry) CallValuesCut(n int64) {
	receiverkit.Count(t.builder.ReceiverCtfFileCallValuesCut, n)
}

// HandoverRetried counts a delivery that was tried again.
func (t *Telemetry) HandoverRetried() { t.builder.ReceiverCtfFileHandoverRetries.Add(background, 1) }

// LogRecordsDropped counts log records that were dropped.
func (t *Telemetry) LogRecordsDropped(n int, reason string) {
	t.builder.ReceiverCtfFileLogRecordsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}

// LogValuesLeftOut counts values that log records lack.
func (t *Telemetry) LogValuesLeftOut(n int64) {
	receiverkit.Count(t.builder.ReceiverCtfFileLogValuesLeftOut, n)
}

// MetricPointsDropped counts metric points that were dropped.
func (t *Telemetry) MetricPointsDropped(n int, reason string) {
	t.builder.ReceiverCtfFileMetricPointsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}
