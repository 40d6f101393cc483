// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
)

// telemetry has the receiver's own metrics. No method is called for each event. Any goroutine may use it.
type telemetry struct {
	*session.Counters
	builder *metadata.TelemetryBuilder
}

// newTelemetry returns the metrics of a receiver. progress returns the bytes that were found and read.
func newTelemetry(kit *receiverkit.Kit, progress func() (found, read int64)) (*telemetry, error) {
	b, err := metadata.NewTelemetryBuilder(kit.Telemetry)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		b.RegisterReceiverCtfFileBytesFoundCallback(func(_ context.Context, o metric.Int64Observer) error {
			found, _ := progress()
			o.Observe(found)
			return nil
		}),
		b.RegisterReceiverCtfFileBytesReadCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, read := progress()
			o.Observe(read)
			return nil
		}),
	)
	if err != nil {
		return nil, err
	}
	return &telemetry{builder: b, Counters: session.NewCounters(session.Instruments{
		Sessions: b.ReceiverCtfFileTraces, SessionsDetached: b.ReceiverCtfFileTracesClosed, Streams: b.ReceiverCtfFileStreams,
		// Only relay daemons drop data that was not read.
		StreamsCut: noop.Int64Counter{}, Cleared: noop.Int64Counter{},
		ConnectionFailures: b.ReceiverCtfFileReadFailures, BadData: b.ReceiverCtfFileBadData,
		Packets: b.ReceiverCtfFilePackets, PacketsLost: b.ReceiverCtfFilePacketsLost, Bytes: b.ReceiverCtfFileBytes,
		Events: b.ReceiverCtfFileEvents, EventsLate: b.ReceiverCtfFileEventsLate, EventsDiscarded: b.ReceiverCtfFileEventsDiscarded,
		CallStreams: b.ReceiverCtfFileProcesses, CallEvents: b.ReceiverCtfFileCallEvents, CallEventsDropped: b.ReceiverCtfFileCallEventsDropped,
		CallValuesCut: b.ReceiverCtfFileCallValuesCut, Breaks: b.ReceiverCtfFileBreaks,
		Batches: b.ReceiverCtfFileBatches, BatchesDropped: b.ReceiverCtfFileBatchesDropped, HandoverRetries: b.ReceiverCtfFileHandoverRetries,
		NamesForgotten: b.ReceiverCtfFileNamesForgotten, NamesUnknown: b.ReceiverCtfFileNamesUnknown, LinesUnknown: b.ReceiverCtfFileLinesUnknown,
		ObjectsRefused: b.ReceiverCtfFileObjectsRefused, FilesRefused: b.ReceiverCtfFileSymbolFilesRefused,
		LogRecordsDropped: b.ReceiverCtfFileLogRecordsDropped, LogValuesLeftOut: b.ReceiverCtfFileLogValuesLeftOut,
		MetricPointsDropped: b.ReceiverCtfFileMetricPointsDropped,
	})}, nil
}

// PacketDamaged counts a packet that cannot be read.
func (t *telemetry) PacketDamaged() {
	t.builder.ReceiverCtfFilePacketsDamaged.Add(context.Background(), 1)
}

// TraceRead counts a trace that was read to its end, TraceFailed one that was given up.
func (t *telemetry) TraceRead()   { t.builder.ReceiverCtfFileTracesRead.Add(context.Background(), 1) }
func (t *telemetry) TraceFailed() { t.builder.ReceiverCtfFileTracesFailed.Add(context.Background(), 1) }

// Shutdown ends the metrics.
func (t *telemetry) Shutdown() { t.builder.Shutdown() }
