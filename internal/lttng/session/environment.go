// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// Settings are the settings of all sessions of a receiver.
type Settings struct {
	// Endpoint is the address of the relay daemon.
	Endpoint string
	// FromNow is set if a session is read from its first attachment on, and not from its beginning.
	FromNow bool
	// MaxDelay is the maximum time that other streams of a trace wait for a stream that sends nothing.
	MaxDelay time.Duration
	// MinPoll and MaxPoll are the shortest and the longest pause after a round without news.
	MinPoll, MaxPoll time.Duration
	RequestTimeout   time.Duration
	Reconnect        backoff.Config
	// Stored is set if a storage keeps positions, so that the next collector continues.
	Stored          bool
	ShutdownTimeout time.Duration
	Limits          Limits
}

// Limits bound the memory that a relay daemon can make a session use.
type Limits struct {
	// Streams is the maximum number of streams.
	Streams int
	// PacketBytes and MetadataBytes bound a packet, and the metadata of a trace.
	PacketBytes, MetadataBytes int
	// SessionMetadataBytes bounds the metadata of all traces, with its representation in memory.
	SessionMetadataBytes int
	// WaitingBytes bounds the packets that wait for packets of other streams.
	WaitingBytes int
	// AheadBytes is the part of WaitingBytes for packets that no stream waits for, at most half of it; 0: half.
	AheadBytes int
}

// Telemetry counts, for the operator of the collector. No method is called for each event.
type Telemetry interface {
	process.Telemetry
	// Sessions counts sessions that were attached and not detached. SessionDetached counts one that was detached
	// because of a reason.
	Sessions(change int64)
	SessionDetached(reason string)
	// ConnectionFailed counts a failed connection.
	ConnectionFailed()
	// BadData counts data of a kind that cannot be read.
	BadData(what string)
	// Streams counts streams that began and did not end, StreamCut one without its last packet.
	Streams(change int64)
	StreamCut()
	// Received counts packets and bytes, PacketsLost packets that did not arrive.
	Received(packets, bytes int64)
	PacketsLost(packets int64)
	// Cleared counts recordings that were cleared.
	Cleared()
	// EventsLate counts events that are older than an event before them, EventsDiscarded those that the tracer
	// discarded.
	EventsRead(events int64)
	EventsLate(events int64)
	EventsDiscarded(events int64)
	LogValuesLeftOut(n int64)
	// LogRecordsDropped counts log records that were dropped because of a reason.
	LogRecordsDropped(n int, reason string)
	// BatchAccepted counts a batch that the pipeline accepted, HandoverRetried a delivery that was tried again.
	BatchAccepted()
	HandoverRetried()
	// SymbolFileRefused counts an object file, or a part of it, that was not read because of the memory budget.
	SymbolFileRefused()
}

// Kinds of bad data.
const (
	BadProtocol = "protocol"
	BadMetadata = "metadata"
	BadPacket   = "packet"
)

// Environment is shared by all sessions of a receiver.
type Environment struct {
	Settings  Settings
	Process   *process.Settings
	Logger    *zap.Logger
	Telemetry Telemetry
	// Health is the status of the component.
	Health    *serverhealth.Health
	Positions *position.Store
	// Memory has the memory accounts of sessions.
	Memory *budget.Group
	// Logs configures log records. It is nil if no pipeline accepts them. DeliverLogs delivers them, and CloseLogs waits
	// until all are delivered.
	Logs        *process.LogSettings
	DeliverLogs func(logs plog.Logs, records, bytes int)
	CloseLogs   func()
	// NewBatches returns the delivery of a session's batches; nil: no pipeline takes traces. Batches that are not
	// delivered when ctx ends are dropped.
	NewBatches func(ctx context.Context, logger *zap.Logger) process.Batches
	// Ended is called with the last state of a session.
	Ended func(State)
	// Serving, Leaving and Delivering are those of receiverkit.Run. Requests without a reply end with Leaving.
	Serving, Leaving, Delivering context.Context
	Now                          func() time.Time
	Dial                         func(context.Context) (net.Conn, error)
	// Held is called with the bytes of waiting packets and of buffers for reuse, when they change. It may be nil.
	Held func(waiting, free int)

	seldom seldomLines
	config Config
	// accounts are the memory accounts of shared data.
	accounts []*budget.Account
}

// seldomLines count log lines of all sessions: a relay daemon may list other sessions each time. Some are
// logged immediately, the others seldom; for debugging all are logged.
type seldomLines struct{ attached, closed, gone, detached logline.Seldom }

// SessionsLogged is the number of sessions in 10 seconds whose begin and end are logged. It is more than a person
// starts by hand.
const SessionsLogged = 20

// LogSeldom logs a line, at the debug level if the line was logged a short time ago.
func (e *Environment) LogSeldom(line *logline.Seldom, logger *zap.Logger, level zapcore.Level, message string, fields ...zap.Field) {
	since, due := line.Count(e.Now())
	if !due {
		logger.Debug(message, fields...)
		return
	}
	logger.Log(level, message, append(fields, zap.Int("times_since_last_line", since))...)
}

// IsStopping reports whether the shutdown has begun.
func (e *Environment) IsStopping() bool { return e.Serving.Err() != nil }

// Pause waits. It returns false if the shutdown begins.
func (e *Environment) Pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.Serving.Done():
		return false
	}
}

// AnswerTime returns the time limit for a pending request at the shutdown, so that the session can be detached.
func (e *Environment) AnswerTime() time.Duration {
	return min(time.Second, e.Settings.ShutdownTimeout/2)
}

// Connect connects to the relay daemon. room is called with the size of each reply before it is read;
// its error refuses the reply. The connection closes when ctx ends.
func (e *Environment) Connect(ctx context.Context, room func(bytes int) error) (net.Conn, *lttnglive.Viewer, error) {
	conn, err := e.Dial(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to relay daemon %s: %w", e.Settings.Endpoint, err)
	}
	limits := &e.Settings.Limits
	viewer, err := lttnglive.Connect(ctx, conn, lttnglive.ViewerOptions{
		Timeout: e.Settings.RequestTimeout, Room: room,
		Limits: lttnglive.Limits{Streams: limits.Streams, Packet: limits.PacketBytes, Metadata: limits.MetadataBytes},
	})
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, viewer, nil
}
