// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

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

// telemetry counts what the receiver does, for its operator. Nothing in it is
// called for each event.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	causes  [callevent.CauseCount]metric.MeasurementOption
}

func newTelemetry(settings component.TelemetrySettings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder}
	for cause := range t.causes {
		t.causes[cause] = receiverkit.With("cause", callevent.Cause(cause).String())
	}
	return t, nil
}

// Where something that could not be read came from.
const (
	connectionNew     = "new"
	connectionControl = "control"
	connectionData    = "data"
)

// droppedInvalid is why a batch was dropped that could not be made. The other reasons are
// those of hand-overs.
const droppedInvalid = "invalid"

var background = context.Background()

func (t *telemetry) shutdown() { t.builder.Shutdown() }

// class counts a report of what an agent did with a class.
func (t *telemetry) class(result bytefrog.MessageType) {
	text := "transformed"
	switch result {
	case bytefrog.TypeClassIgnored:
		text = "ignored"
	case bytefrog.TypeClassTransformFailed:
		text = "failed"
	}
	t.builder.ReceiverBytefrogClasses.Add(background, 1, receiverkit.With("result", text))
}

func (t *telemetry) connections(change int64) {
	t.builder.ReceiverBytefrogConnections.Add(background, change)
}

func (t *telemetry) refused(reason string) {
	t.builder.ReceiverBytefrogRefused.Add(background, 1, receiverkit.With("reason", reason))
}

func (t *telemetry) evicted(reason slots.Reason) {
	t.builder.ReceiverBytefrogConnectionsEvicted.Add(background, 1, receiverkit.With("reason", string(reason)))
}

func (t *telemetry) gaveWay() { t.builder.ReceiverBytefrogRunsGaveWay.Add(background, 1) }

func (t *telemetry) lingering(change int64) {
	t.builder.ReceiverBytefrogLingering.Add(background, change)
}

func (t *telemetry) lingeringCut(reason string) {
	t.builder.ReceiverBytefrogLingeringCut.Add(background, 1, receiverkit.With("reason", reason))
}

func (t *telemetry) discarded(bytes int64) {
	if bytes > 0 {
		t.builder.ReceiverBytefrogBytesDiscarded.Add(background, bytes)
	}
}

func (t *telemetry) acceptError() { t.builder.ReceiverBytefrogAcceptErrors.Add(background, 1) }

func (t *telemetry) runs(change int64) { t.builder.ReceiverBytefrogRuns.Add(background, change) }

func (t *telemetry) runEnded(cause callevent.Cause) {
	t.builder.ReceiverBytefrogRunsEnded.Add(background, 1, t.causes[cause])
}

func (t *telemetry) badData(connection string) {
	t.builder.ReceiverBytefrogBadData.Add(background, 1, receiverkit.With("connection", connection))
}

func (t *telemetry) received(events, bytes int64) {
	if bytes > 0 {
		t.builder.ReceiverBytefrogBytes.Add(background, bytes)
	}
	if events > 0 {
		t.builder.ReceiverBytefrogEvents.Add(background, events)
	}
}

func (t *telemetry) batchAccepted() { t.builder.ReceiverBytefrogBatches.Add(background, 1) }

func (t *telemetry) batchDropped(events int, reason string) {
	with := receiverkit.With("reason", reason)
	t.builder.ReceiverBytefrogBatchesDropped.Add(background, 1, with)
	t.builder.ReceiverBytefrogEventsDropped.Add(background, int64(events), with)
}

func (t *telemetry) eventsDropped(events int, reason string) {
	t.builder.ReceiverBytefrogEventsDropped.Add(background, int64(events), receiverkit.With("reason", reason))
}

func (t *telemetry) runShed(reason string) {
	t.builder.ReceiverBytefrogRunsShed.Add(background, 1, receiverkit.With("reason", reason))
}

func (t *telemetry) handoverRetried() { t.builder.ReceiverBytefrogHandoverRetries.Add(background, 1) }

func (t *telemetry) suspended() { t.builder.ReceiverBytefrogSuspends.Add(background, 1) }

func (t *telemetry) brokeOff(cause callevent.Cause) {
	t.builder.ReceiverBytefrogBreaks.Add(background, 1, t.causes[cause])
}

func (t *telemetry) barriersDropped(n int64) {
	if n > 0 {
		t.builder.ReceiverBytefrogBarriersDropped.Add(background, n)
	}
}

func (t *telemetry) namesLate(n int64) {
	if n > 0 {
		t.builder.ReceiverBytefrogNamesLate.Add(background, n)
	}
}

func (t *telemetry) namesUnknown(n int64) {
	if n > 0 {
		t.builder.ReceiverBytefrogNamesUnknown.Add(background, n)
	}
}

func (t *telemetry) nameRemapped() { t.builder.ReceiverBytefrogNamesRemapped.Add(background, 1) }

func (t *telemetry) threadReused() { t.builder.ReceiverBytefrogThreadsReused.Add(background, 1) }

func (t *telemetry) logRecordsDropped(n int, reason string) {
	t.builder.ReceiverBytefrogLogRecordsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}

func (t *telemetry) metricPointsDropped(n int, reason string) {
	t.builder.ReceiverBytefrogMetricPointsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}
