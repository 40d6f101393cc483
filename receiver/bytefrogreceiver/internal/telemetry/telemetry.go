// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry counts the work of the receiver, for the operator of the collector.
package telemetry

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
)

// Telemetry has the receiver's own metrics. No method is called for each event. Any goroutine may use
// it.
type Telemetry struct {
	builder *metadata.TelemetryBuilder
	causes  [callevent.CauseCount]metric.MeasurementOption
}

// New returns the metrics of a receiver.
func New(settings component.TelemetrySettings) (*Telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{builder: builder}
	for cause := range t.causes {
		t.causes[cause] = receiverkit.With("cause", callevent.Cause(cause).String())
	}
	return t, nil
}

// Kinds of connections with bad data.
const (
	ConnectionNew     = "new"
	ConnectionControl = "control"
	ConnectionData    = "data"
)

var background = context.Background()

// Shutdown ends the metrics.
func (t *Telemetry) Shutdown() { t.builder.Shutdown() }

// Class counts a report about a class.
func (t *Telemetry) Class(result bytefrog.MessageType) {
	text := "transformed"
	switch result {
	case bytefrog.TypeClassIgnored:
		text = "ignored"
	case bytefrog.TypeClassTransformFailed:
		text = "failed"
	}
	t.builder.ReceiverBytefrogClasses.Add(background, 1, receiverkit.With("result", text))
}

// Connections changes the number of open connections.
func (t *Telemetry) Connections(change int64) {
	t.builder.ReceiverBytefrogConnections.Add(background, change)
}

// Refused counts a refused connection.
func (t *Telemetry) Refused(reason string) {
	t.builder.ReceiverBytefrogRefused.Add(background, 1, receiverkit.With("reason", reason))
}

// Evicted counts a connection that was closed to make room.
func (t *Telemetry) Evicted(reason slots.Reason) {
	t.builder.ReceiverBytefrogConnectionsEvicted.Add(background, 1, receiverkit.With("reason", string(reason)))
}

// GaveWay counts a run that ended to make room for another agent.
func (t *Telemetry) GaveWay() { t.builder.ReceiverBytefrogRunsGaveWay.Add(background, 1) }

// Lingering changes the number of connections of disconnected agents.
func (t *Telemetry) Lingering(change int64) {
	t.builder.ReceiverBytefrogLingering.Add(background, change)
}

// LingeringCut counts such a connection that the receiver closed.
func (t *Telemetry) LingeringCut(reason string) {
	t.builder.ReceiverBytefrogLingeringCut.Add(background, 1, receiverkit.With("reason", reason))
}

// Discarded counts bytes that were read from such connections.
func (t *Telemetry) Discarded(bytes int64) {
	if bytes > 0 {
		t.builder.ReceiverBytefrogBytesDiscarded.Add(background, bytes)
	}
}

// AcceptError counts a connection that could not be accepted.
func (t *Telemetry) AcceptError() { t.builder.ReceiverBytefrogAcceptErrors.Add(background, 1) }

// Runs changes the number of runs.
func (t *Telemetry) Runs(change int64) { t.builder.ReceiverBytefrogRuns.Add(background, change) }

// RunEnded counts a run that ended.
func (t *Telemetry) RunEnded(cause callevent.Cause) {
	t.builder.ReceiverBytefrogRunsEnded.Add(background, 1, t.causes[cause])
}

// BadData counts a connection with unreadable data.
func (t *Telemetry) BadData(connection string) {
	t.builder.ReceiverBytefrogBadData.Add(background, 1, receiverkit.With("connection", connection))
}

// Received counts events and bytes of data connections.
func (t *Telemetry) Received(events, bytes int64) {
	if bytes > 0 {
		t.builder.ReceiverBytefrogBytes.Add(background, bytes)
	}
	if events > 0 {
		t.builder.ReceiverBytefrogEvents.Add(background, events)
	}
}

// BatchAccepted counts an accepted batch.
func (t *Telemetry) BatchAccepted() { t.builder.ReceiverBytefrogBatches.Add(background, 1) }

// BatchDropped counts a dropped batch.
func (t *Telemetry) BatchDropped(events int, reason string) {
	with := receiverkit.With("reason", reason)
	t.builder.ReceiverBytefrogBatchesDropped.Add(background, 1, with)
	t.builder.ReceiverBytefrogEventsDropped.Add(background, int64(events), with)
}

// BatchInvalid counts a batch that could not be made.
func (t *Telemetry) BatchInvalid(events int) { t.BatchDropped(events, "invalid") }

// EventsDropped counts events that are in no batch.
func (t *Telemetry) EventsDropped(events int, reason string) {
	t.builder.ReceiverBytefrogEventsDropped.Add(background, int64(events), receiverkit.With("reason", reason))
}

// RunShed counts a run whose memory was freed.
func (t *Telemetry) RunShed(reason string) {
	t.builder.ReceiverBytefrogRunsShed.Add(background, 1, receiverkit.With("reason", reason))
}

// HandoverRetried counts another try to deliver a batch.
func (t *Telemetry) HandoverRetried() { t.builder.ReceiverBytefrogHandoverRetries.Add(background, 1) }

// Suspended counts a suspension because of overload.
func (t *Telemetry) Suspended() { t.builder.ReceiverBytefrogSuspends.Add(background, 1) }

// BrokeOff counts a break.
func (t *Telemetry) BrokeOff(cause callevent.Cause) {
	t.builder.ReceiverBytefrogBreaks.Add(background, 1, t.causes[cause])
}

// BarriersDropped counts breaks that were dropped.
func (t *Telemetry) BarriersDropped(n int64) {
	if n > 0 {
		t.builder.ReceiverBytefrogBarriersDropped.Add(background, n)
	}
}

// NamesLate counts events with late names.
func (t *Telemetry) NamesLate(n int64) {
	if n > 0 {
		t.builder.ReceiverBytefrogNamesLate.Add(background, n)
	}
}

// NamesUnknown counts events without names.
func (t *Telemetry) NamesUnknown(n int64) {
	if n > 0 {
		t.builder.ReceiverBytefrogNamesUnknown.Add(background, n)
	}
}

// NameRemapped counts a method or an exception with another name than before.
func (t *Telemetry) NameRemapped() { t.builder.ReceiverBytefrogNamesRemapped.Add(background, 1) }

// ThreadReused counts a thread with the ID of another thread.
func (t *Telemetry) ThreadReused() { t.builder.ReceiverBytefrogThreadsReused.Add(background, 1) }

// LogRecordsDropped counts dropped log records.
func (t *Telemetry) LogRecordsDropped(n int, reason string) {
	t.builder.ReceiverBytefrogLogRecordsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}

// MetricPointsDropped counts dropped metric points.
func (t *Telemetry) MetricPointsDropped(n int, reason string) {
	t.builder.ReceiverBytefrogMetricPointsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}
