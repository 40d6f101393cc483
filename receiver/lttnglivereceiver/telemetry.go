// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// telemetry has the receiver's own metrics. No method is called for each event. Any goroutine may use it.
type telemetry struct {
	*session.Counters
	builder *metadata.TelemetryBuilder
}

func newTelemetry(kit *receiverkit.Kit) (*telemetry, error) {
	b, err := metadata.NewTelemetryBuilder(kit.Telemetry)
	if err != nil {
		return nil, err
	}
	if err := b.RegisterReceiverLttngLiveServerUpCallback(kit.Health.Observe); err != nil {
		return nil, err
	}
	return &telemetry{builder: b, Counters: session.NewCounters(session.Instruments{
		Sessions: b.ReceiverLttngLiveSessions, SessionsDetached: b.ReceiverLttngLiveSessionsDetached,
		Streams: b.ReceiverLttngLiveStreams, StreamsCut: b.ReceiverLttngLiveStreamsCut, Cleared: b.ReceiverLttngLiveCleared,
		ConnectionFailures: b.ReceiverLttngLiveConnectionFailures, BadData: b.ReceiverLttngLiveBadData,
		Packets: b.ReceiverLttngLivePackets, PacketsLost: b.ReceiverLttngLivePacketsLost, Bytes: b.ReceiverLttngLiveBytes,
		Events: b.ReceiverLttngLiveEvents, EventsLate: b.ReceiverLttngLiveEventsLate, EventsDiscarded: b.ReceiverLttngLiveEventsDiscarded,
		CallStreams: b.ReceiverLttngLiveProcesses, CallEvents: b.ReceiverLttngLiveCallEvents, CallEventsDropped: b.ReceiverLttngLiveCallEventsDropped,
		CallValuesCut: b.ReceiverLttngLiveCallValuesCut, Breaks: b.ReceiverLttngLiveBreaks,
		Batches: b.ReceiverLttngLiveBatches, BatchesDropped: b.ReceiverLttngLiveBatchesDropped, HandoverRetries: b.ReceiverLttngLiveHandoverRetries,
		NamesForgotten: b.ReceiverLttngLiveNamesForgotten, NamesUnknown: b.ReceiverLttngLiveNamesUnknown, LinesUnknown: b.ReceiverLttngLiveLinesUnknown,
		ObjectsRefused: b.ReceiverLttngLiveObjectsRefused, FilesRefused: b.ReceiverLttngLiveSymbolFilesRefused,
		LogRecordsDropped: b.ReceiverLttngLiveLogRecordsDropped, LogValuesLeftOut: b.ReceiverLttngLiveLogValuesLeftOut,
		MetricPointsDropped: b.ReceiverLttngLiveMetricPointsDropped,
	})}, nil
}

// Shutdown ends the metrics.
func (t *telemetry) Shutdown() { t.builder.Shutdown() }
