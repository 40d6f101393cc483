// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// telemetry counts what the receiver does, for its operator. Nothing in it is
// called for each event.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	causes  [callevent.CauseCount]metric.MeasurementOption
}

func newTelemetry(settings component.TelemetrySettings, health *serverhealth.Health) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	if err := builder.RegisterReceiverLttngLiveServerUpCallback(health.Observe); err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder}
	for cause := range t.causes {
		t.causes[cause] = withAttribute("cause", callevent.Cause(cause).String())
	}
	return t, nil
}

func withAttribute(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// What could not be read.
const (
	badProtocol = "protocol"
	badMetadata = "metadata"
	badPacket   = "packet"
)

// Why something was dropped, beside the reasons of hand-overs.
const (
	droppedInvalid   = "invalid"
	droppedNoProcess = "no_process"
	droppedNoThread  = "no_thread"
	droppedNoKey     = "no_key"
	// droppedMemory: the process's memory budget is used up.
	droppedMemory = "memory_budget"
)

var background = context.Background()

func (t *telemetry) shutdown() { t.builder.Shutdown() }

func (t *telemetry) sessions(change int64) {
	t.builder.ReceiverLttngLiveSessions.Add(background, change)
}

func (t *telemetry) sessionDetached(reason string) {
	t.builder.ReceiverLttngLiveSessionsDetached.Add(background, 1, withAttribute("reason", reason))
}

func (t *telemetry) streams(change int64) {
	t.builder.ReceiverLttngLiveStreams.Add(background, change)
}

func (t *telemetry) streamCut() { t.builder.ReceiverLttngLiveStreamsCut.Add(background, 1) }

func (t *telemetry) processes(change int64) {
	t.builder.ReceiverLttngLiveProcesses.Add(background, change)
}

func (t *telemetry) connectionFailed() {
	t.builder.ReceiverLttngLiveConnectionFailures.Add(background, 1)
}

func (t *telemetry) badData(what string) {
	t.builder.ReceiverLttngLiveBadData.Add(background, 1, withAttribute("what", what))
}

func (t *telemetry) received(packets, bytes int64) {
	if packets > 0 {
		t.builder.ReceiverLttngLivePackets.Add(background, packets)
	}
	t.builder.ReceiverLttngLiveBytes.Add(background, bytes)
}

func (t *telemetry) read(events int64) {
	if events > 0 {
		t.builder.ReceiverLttngLiveEvents.Add(background, events)
	}
}

func (t *telemetry) late(events int64) {
	if events > 0 {
		t.builder.ReceiverLttngLiveEventsLate.Add(background, events)
	}
}

func (t *telemetry) discarded(events int64) {
	if events > 0 {
		t.builder.ReceiverLttngLiveEventsDiscarded.Add(background, events)
	}
}

func (t *telemetry) packetsLost(packets int64) {
	if packets > 0 {
		t.builder.ReceiverLttngLivePacketsLost.Add(background, packets)
	}
}

func (t *telemetry) cleared() { t.builder.ReceiverLttngLiveCleared.Add(background, 1) }

func (t *telemetry) packed(events int64) {
	t.builder.ReceiverLttngLiveCallEvents.Add(background, events)
}

func (t *telemetry) brokeOff(cause callevent.Cause) {
	t.builder.ReceiverLttngLiveBreaks.Add(background, 1, t.causes[cause])
}

func (t *telemetry) namesForgotten(n int64) {
	t.builder.ReceiverLttngLiveNamesForgotten.Add(background, n)
}

func (t *telemetry) objectRefused() { t.builder.ReceiverLttngLiveObjectsRefused.Add(background, 1) }

func (t *telemetry) namesUnknown(functions int64) {
	t.builder.ReceiverLttngLiveNamesUnknown.Add(background, functions)
}

func (t *telemetry) batchAccepted() { t.builder.ReceiverLttngLiveBatches.Add(background, 1) }

func (t *telemetry) batchDropped(events int, reason string) {
	t.builder.ReceiverLttngLiveBatchesDropped.Add(background, 1, withAttribute("reason", reason))
	t.callEventsDropped(int64(events), reason)
}

func (t *telemetry) callEventsDropped(events int64, reason string) {
	t.builder.ReceiverLttngLiveCallEventsDropped.Add(background, events, withAttribute("reason", reason))
}

func (t *telemetry) callValuesCut(n int64) {
	if n > 0 {
		t.builder.ReceiverLttngLiveCallValuesCut.Add(background, n)
	}
}

func (t *telemetry) handoverRetried() { t.builder.ReceiverLttngLiveHandoverRetries.Add(background, 1) }

func (t *telemetry) logRecordsDropped(n int, reason string) {
	t.builder.ReceiverLttngLiveLogRecordsDropped.Add(background, int64(n), withAttribute("reason", reason))
}

func (t *telemetry) logValuesLeftOut(n int64) {
	if n > 0 {
		t.builder.ReceiverLttngLiveLogValuesLeftOut.Add(background, n)
	}
}

func (t *telemetry) metricPointsDropped(n int, reason string) {
	t.builder.ReceiverLttngLiveMetricPointsDropped.Add(background, int64(n), withAttribute("reason", reason))
}
