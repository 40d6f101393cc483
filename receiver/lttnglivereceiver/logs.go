// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"runtime"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

const (
	// maxLogBatch and maxLogBatchBytes are how many log records, and bytes of them,
	// are handed on at once; the last record may exceed the bytes.
	maxLogBatch      = 1000
	maxLogBatchBytes = mib

	// bytesOfRecord and bytesOfValue are what a record and one of its attributes take
	// in memory beside their texts, about.
	bytesOfRecord = 200
	bytesOfValue  = 64
)

// logBatcher makes log records of events, and hands them on many at a time. It is for
// one goroutine; nil: no pipeline takes logs.
type logBatcher struct {
	env  *environment
	logs plog.Logs
	// origins are the processes that the batch has records of; last is that of the last
	// record.
	origins map[*origin]*originLogs
	last    *originLogs
	records int
	bytes   int
	// leftOut is how many values were left out of the records, or cut.
	leftOut int
	// opened is when the first record came, observed the same as records say it.
	opened   time.Time
	observed pcommon.Timestamp
	texts    *texts
}

// originLogs are the records of one process in a batch, by their scope.
type originLogs struct {
	of       *origin
	resource plog.ResourceLogs
	own      plog.LogRecordSlice
	hasOwn   bool
	loggers  map[string]plog.LogRecordSlice
}

func newLogBatcher(env *environment) *logBatcher {
	if env.logs == nil {
		return nil
	}
	return &logBatcher{env: env, logs: plog.NewLogs(), origins: map[*origin]*originLogs{}, texts: newTexts()}
}

// add makes a log record of an event. packet is the packet that it stands in; nanos
// its time.
func (b *logBatcher) add(p *plan, e *ctf.Event, packet *ctf.Packet, nanos int64, of *origin) {
	if b.records == 0 {
		b.opened = b.env.now()
		b.observed = pcommon.NewTimestampFromTime(b.opened)
	}
	if b.last == nil || b.last.of != of {
		b.last = b.origin(of)
	}
	logger := p.record.logger.get(&e.Values)
	if len(logger) > maxNameBytes {
		logger = logger[:maxNameBytes]
		b.leftOut++
	}
	r := b.scope(b.last, logger).AppendEmpty()
	r.SetTimestamp(pcommon.Timestamp(max(nanos, 0)))
	r.SetObservedTimestamp(b.observed)
	size := p.record.write(r, e, packet, b.texts)
	b.bytes += size.bytes
	b.leftOut += size.leftOut
	b.records++
	if b.records >= maxLogBatch || b.bytes >= maxLogBatchBytes {
		b.flush()
	}
}

// origin is where the records of a process go.
func (b *logBatcher) origin(of *origin) *originLogs {
	logs := b.origins[of]
	if logs == nil {
		logs = &originLogs{of: of, resource: b.logs.ResourceLogs().AppendEmpty(), loggers: map[string]plog.LogRecordSlice{}}
		logs.resource.SetSchemaUrl(schema.URL)
		b.origins[of] = logs
	}
	return logs
}

// scope is where the records of a logger go; nil: those of no logger.
func (b *logBatcher) scope(logs *originLogs, logger []byte) plog.LogRecordSlice {
	if len(logger) == 0 {
		if !logs.hasOwn {
			scope := logs.resource.ScopeLogs().AppendEmpty()
			scope.SetSchemaUrl(schema.URL)
			setScope(scope.Scope(), b.env.build)
			logs.own, logs.hasOwn = scope.LogRecords(), true
		}
		return logs.own
	}
	if records, ok := logs.loggers[string(logger)]; ok {
		return records
	}
	scope := logs.resource.ScopeLogs().AppendEmpty()
	scope.SetSchemaUrl(schema.URL)
	scope.Scope().SetName(validString(logger))
	b.bytes += len(logger)
	logs.loggers[string(logger)] = scope.LogRecords()
	return scope.LogRecords()
}

func setScope(scope pcommon.InstrumentationScope, build component.BuildInfo) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(build.Version)
}

// attend hands on what is old enough.
func (b *logBatcher) attend(now time.Time) {
	if b != nil && b.records > 0 && now.Sub(b.opened) >= b.env.config.Batch.MaxDelay {
		b.flush()
	}
}

// flush hands on what there is.
func (b *logBatcher) flush() {
	if b == nil || b.records == 0 {
		return
	}
	for of, logs := range b.origins {
		// Not before: the first events of a process are those that say its name.
		of.frozen().CopyTo(logs.resource.Resource())
	}
	b.env.logs.Add(logParcel{logs: b.logs, records: b.records, bytes: b.bytes})
	b.env.telemetry.logValuesLeftOut(int64(b.leftOut))
	// Where both share a core the pipeline goes first: what is handed on while it is in
	// the processor's caches, and is garbage before the next batch, costs less than what
	// piles up.
	runtime.Gosched()
	b.logs = plog.NewLogs()
	clear(b.origins)
	b.last = nil
	b.records, b.bytes, b.leftOut = 0, 0, 0
}
