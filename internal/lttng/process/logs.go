// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"runtime"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
)

const (
	// maxLogBatch and MaxLogBatchBytes bound the log records that are delivered together; the last
	// record may exceed the bytes.
	maxLogBatch      = 1000
	MaxLogBatchBytes = 1 << 20
)

// LogSettings configure the delivery of a group's log records.
type LogSettings struct {
	// MaxRecordBytes is the maximum size of a log record in memory.
	MaxRecordBytes int
	// EnumerationNumbers and Hexadecimal are those of mapping.Records.
	EnumerationNumbers, Hexadecimal bool
	// MaxDelay is the time from the first log record until delivery.
	MaxDelay time.Duration
	// ScopeName and ScopeVersion are the scope of records without a logger.
	ScopeName, ScopeVersion string
	Now                     func() time.Time
	// Deliver delivers log records, with their number and size, and the number of values that they
	// lack. It may wait for the pipeline.
	Deliver func(logs plog.Logs, records, bytes, leftOut int)
}

// Logs makes log records from events, and delivers them in batches. One goroutine uses it. A nil Logs has no records.
type Logs struct {
	settings LogSettings
	logs     plog.Logs
	// origins are the processes with records in the batch. last belongs to the last record.
	origins []*originLogs
	last    *originLogs
	records int
	bytes   int
	// leftOut is the number of values that were omitted from the records, or truncated.
	leftOut int
	// opened is the time of the first record, and observed is the same for the records.
	opened   time.Time
	observed pcommon.Timestamp
	texts    *mapping.Texts
}

// originLogs are the records of a process in a batch, by logger.
type originLogs struct {
	of       *Origin
	resource plog.ResourceLogs
	// own are records without a logger.
	own     plog.LogRecordSlice
	hasOwn  bool
	loggers map[string]plog.LogRecordSlice
}

// NewLogs returns an empty batch.
func NewLogs(settings LogSettings) *Logs {
	return &Logs{settings: settings, logs: plog.NewLogs(), texts: mapping.NewTexts()}
}

// Bytes returns the approximate size of the batch in memory.
func (b *Logs) Bytes() int {
	if b == nil {
		return 0
	}
	return b.bytes
}

// append makes a log record from an event in a packet. nanos is the event's Unix time. thread is the thread of the event
// if its fields do not show it, or nil.
func (b *Logs) append(p *mapping.Plan, e *ctf.Event, packet *ctf.Packet, nanos int64, of *Origin, thread *mapping.Thread) {
	if b.records == 0 {
		b.opened = b.settings.Now()
		b.observed = pcommon.NewTimestampFromTime(b.opened)
	}
	if b.last == nil || b.last.of != of {
		b.last = b.originLogs(of)
	}
	logger := p.Record.Logger.Bytes(&e.Values)
	if len(logger) > mapping.MaxNameBytes {
		logger = logger[:mapping.MaxNameBytes]
		b.leftOut++
	}
	r := b.scope(b.last, p.Record, logger).AppendEmpty()
	r.SetTimestamp(pcommon.Timestamp(max(nanos, 0)))
	r.SetObservedTimestamp(b.observed)
	size := p.Record.Write(r, e, packet, thread, b.texts)
	b.bytes += size.Bytes
	b.leftOut += size.LeftOut
	b.records++
	if b.records >= maxLogBatch || b.bytes >= MaxLogBatchBytes {
		b.Flush()
	}
}

// originLogs returns the records of a process.
func (b *Logs) originLogs(of *Origin) *originLogs {
	if of.logs != nil {
		return of.logs
	}
	logs := &originLogs{of: of, resource: b.logs.ResourceLogs().AppendEmpty()}
	logs.resource.SetSchemaUrl(schema.URL)
	b.origins = append(b.origins, logs)
	of.logs = logs
	return logs
}

// scope returns the records of a logger, which the plan's events name; nil: the records without a logger.
func (b *Logs) scope(logs *originLogs, plan *mapping.RecordPlan, logger []byte) plog.LogRecordSlice {
	if len(logger) == 0 {
		if !logs.hasOwn {
			scope := logs.resource.ScopeLogs().AppendEmpty()
			scope.SetSchemaUrl(schema.URL)
			scope.Scope().SetName(b.settings.ScopeName)
			scope.Scope().SetVersion(b.settings.ScopeVersion)
			logs.own, logs.hasOwn = scope.LogRecords(), true
			logs.own.EnsureCapacity(logs.of.records)
		}
		return logs.own
	}
	if records, ok := logs.loggers[string(logger)]; ok {
		return records
	}
	scope := logs.resource.ScopeLogs().AppendEmpty()
	scope.SetSchemaUrl(schema.URL)
	scope.Scope().SetName(plan.Logger.Decode(logger))
	b.bytes += len(logger)
	if logs.loggers == nil {
		logs.loggers = map[string]plog.LogRecordSlice{}
	}
	logs.loggers[string(logger)] = scope.LogRecords()
	return scope.LogRecords()
}

// DeliverDue delivers the batch if it is old enough.
func (b *Logs) DeliverDue(now time.Time) {
	if b != nil && b.records > 0 && now.Sub(b.opened) >= b.settings.MaxDelay {
		b.Flush()
	}
}

// Flush delivers the batch, if it has records.
func (b *Logs) Flush() {
	if b == nil || b.records == 0 {
		return
	}
	for _, logs := range b.origins {
		// Not earlier: the first events of a process have its name.
		of := logs.of
		of.Resource().CopyTo(logs.resource.Resource())
		if of.logs = nil; logs.hasOwn {
			of.records = logs.own.Len()
		}
	}
	b.settings.Deliver(b.logs, b.records, b.bytes, b.leftOut)
	// If both share a core, the pipeline runs first. Records that are still in the processor's caches,
	// and are garbage before the next batch, cost less than a queue of them.
	runtime.Gosched()
	b.logs = plog.NewLogs()
	clear(b.origins)
	b.origins = b.origins[:0]
	b.last = nil
	b.records, b.bytes, b.leftOut = 0, 0, 0
}
