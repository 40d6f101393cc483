// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry counts the work of the receiver, for the operator of the collector.
package telemetry

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// Telemetry has the receiver's own metrics. No method is called for each event. Any goroutine may use
// it.
type Telemetry struct {
	builder *metadata.TelemetryBuilder
	causes  [callevent.CauseCount]metric.MeasurementOption
}

// New returns the metrics of a receiver; health has the state of its server.
func New(settings component.TelemetrySettings, health *serverhealth.Health) (*Telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	if err := builder.RegisterReceiverLttngLiveServerUpCallback(health.Observe); err != nil {
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

// Sessions counts sessions that were attached and not detached.
func (t *Telemetry) Sessions(change int64) {
	t.builder.ReceiverLttngLiveSessions.Add(background, change)
}

// SessionDetached counts a session that was detached.
func (t *Telemetry) SessionDetached(reason string) {
	t.builder.ReceiverLttngLiveSessionsDetached.Add(background, 1, receiverkit.With("reason", reason))
}

// Streams counts streams that began and did not end.
func (t *Telemetry) Streams(change int64) {
	t.builder.ReceiverLttngLiveStreams.Add(background, change)
}

// StreamCut counts a stream without its last packet.
func (t *Telemetry) StreamCut() { t.builder.ReceiverLttngLiveStreamsCut.Add(background, 1) }

// CallStreams counts call streams that began and did not end.
func (t *Telemetry) CallStreams(change int64) {
	t.builder.ReceiverLttngLiveProcesses.Add(background, change)
}

// ConnectionFailed counts a failed connection.
func (t *Telemetry) ConnectionFailed() {
	t.builder.ReceiverLttngLiveConnectionFailures.Add(background, 1)
}

// BadData counts data of a kind that could not be read.
func (t *Telemetry) BadData(what string) {
	t.builder.ReceiverLttngLiveBadData.Add(background, 1, receiverkit.With("what", what))
}

// Received counts packets and bytes.
func (t *Telemetry) Received(packets, bytes int64) {
	receiverkit.Count(t.builder.ReceiverLttngLivePackets, packets)
	t.builder.ReceiverLttngLiveBytes.Add(background, bytes)
}

// EventsRead counts events.
func (t *Telemetry) EventsRead(events int64) {
	receiverkit.Count(t.builder.ReceiverLttngLiveEvents, events)
}

// EventsLate counts events that are older than an event before them.
func (t *Telemetry) EventsLate(events int64) {
	receiverkit.Count(t.builder.ReceiverLttngLiveEventsLate, events)
}

// EventsDiscarded counts events that the tracer discarded.
func (t *Telemetry) EventsDiscarded(events int64) {
	receiverkit.Count(t.builder.ReceiverLttngLiveEventsDiscarded, events)
}

// PacketsLost counts packets that the relay daemon did not send.
func (t *Telemetry) PacketsLost(packets int64) {
	receiverkit.Count(t.builder.ReceiverLttngLivePacketsLost, packets)
}

// Cleared counts recordings that were cleared.
func (t *Telemetry) Cleared() { t.builder.ReceiverLttngLiveCleared.Add(background, 1) }

// CallEventsPacked counts call events in batches.
func (t *Telemetry) CallEventsPacked(events int64) {
	t.builder.ReceiverLttngLiveCallEvents.Add(background, events)
}

// Break counts breaks of the call streams of a trace.
func (t *Telemetry) Break(cause callevent.Cause) {
	t.builder.ReceiverLttngLiveBreaks.Add(background, 1, t.causes[cause])
}

// NamesForgotten counts names that had no room.
func (t *Telemetry) NamesForgotten(n int64) {
	t.builder.ReceiverLttngLiveNamesForgotten.Add(background, n)
}

// SymbolFileRefused counts an object file, or a part of it, that was not read because of the memory budget.
func (t *Telemetry) SymbolFileRefused() {
	t.builder.ReceiverLttngLiveSymbolFilesRefused.Add(background, 1)
}

// ObjectRefused counts an object that had no room.
func (t *Telemetry) ObjectRefused() { t.builder.ReceiverLttngLiveObjectsRefused.Add(background, 1) }

// NameUnknown counts a function without a name.
func (t *Telemetry) NameUnknown() { t.builder.ReceiverLttngLiveNamesUnknown.Add(background, 1) }

// LineUnknown counts a function with a name and without a source line.
func (t *Telemetry) LineUnknown(reason string) {
	t.builder.ReceiverLttngLiveLinesUnknown.Add(background, 1, receiverkit.With("reason", reason))
}

// BatchAccepted counts a batch that the pipeline accepted.
func (t *Telemetry) BatchAccepted() { t.builder.ReceiverLttngLiveBatches.Add(background, 1) }

// BatchDropped counts a batch that was dropped, and its events.
func (t *Telemetry) BatchDropped(events int, reason string) {
	t.builder.ReceiverLttngLiveBatchesDropped.Add(background, 1, receiverkit.With("reason", reason))
	t.CallEventsDropped(int64(events), reason)
}

// CallEventsDropped counts call events that were dropped.
func (t *Telemetry) CallEventsDropped(events int64, reason string) {
	t.builder.ReceiverLttngLiveCallEventsDropped.Add(background, events, receiverkit.With("reason", reason))
}

// CallValuesCut counts arguments and return values that were cut.
func (t *Telemetry) CallValuesCut(n int64) {
	receiverkit.Count(t.builder.ReceiverLttngLiveCallValuesCut, n)
}

// HandoverRetried counts a delivery that was tried again.
func (t *Telemetry) HandoverRetried() { t.builder.ReceiverLttngLiveHandoverRetries.Add(background, 1) }

// LogRecordsDropped counts log records that were dropped.
func (t *Telemetry) LogRecordsDropped(n int, reason string) {
	t.builder.ReceiverLttngLiveLogRecordsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}

// LogValuesLeftOut counts values that log records lack.
func (t *Telemetry) LogValuesLeftOut(n int64) {
	receiverkit.Count(t.builder.ReceiverLttngLiveLogValuesLeftOut, n)
}

// MetricPointsDropped counts metric points that were dropped.
func (t *Telemetry) MetricPointsDropped(n int, reason string) {
	t.builder.ReceiverLttngLiveMetricPointsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}
