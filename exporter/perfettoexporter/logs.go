// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"cmp"
	"context"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/tracefile"
)

const (
	categoryLog = "log"

	annotationSeverity = "severity"
	annotationBody     = "body"
	annotationSpanID   = "span_id"

	// maxLabelBytes is the length of the body's first line in the name of an instant.
	maxLabelBytes = 120
	// unnamedLog is the name of a log record without a name, a text and a severity.
	unnamedLog = "log record"
)

// consumeLogs adds all log records to chunks. It never fails.
func (e *perfetto) consumeLogs(ctx context.Context, ld plog.Logs) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.reader
	for _, rl := range ld.ResourceLogs().All() {
		r.begin(rl.Resource())
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				r.readLogRecord(record, sl.Scope().Name())
				e.flushFull()
			}
		}
	}
	r.forget()
	e.countUnwritten(ctx)
	return nil
}

// readLogRecord adds a log record as an instant.
func (r *reader) readLogRecord(record plog.LogRecord, scope string) {
	time := record.Timestamp()
	if time == 0 {
		time = record.ObservedTimestamp()
	}
	if !r.isValid(time) {
		return
	}
	w, process := r.writer, r.ownProcess()
	thread, threadName := r.threadOf(process, record.Attributes())
	severity := cmp.Or(record.SeverityText(), severityOf(record))
	w.LogRecord(process, thread, nameOfLogRecord(record, severity), uint64(time))
	w.Category(categoryLog)
	if scope != "" {
		w.Category(scope)
	}
	if record.SeverityNumber() >= plog.SeverityNumberError {
		w.Category(categoryError)
	}
	if severity != "" {
		w.Annotate(annotationSeverity, func(a *tracefile.Annotation) { a.String(severity) })
	}
	if body := record.Body(); body.Type() != pcommon.ValueTypeEmpty {
		w.Annotate(annotationBody, func(a *tracefile.Annotation) { appendValue(a, body, maxDepth) })
	}
	if id := record.TraceID(); !id.IsEmpty() {
		w.Annotate(annotationTraceID, func(a *tracefile.Annotation) { a.String(id.String()) })
	}
	if id := record.SpanID(); !id.IsEmpty() {
		w.Annotate(annotationSpanID, func(a *tracefile.Annotation) { a.String(id.String()) })
	}
	r.readAttributes(record.Attributes(), func(key string) bool {
		return thread != nil && (key == attributeThreadID || key == attributeThreadName && threadName == thread.Name())
	})
}

// threadOf returns the thread that attributes name, or nil, and its name there.
func (r *reader) threadOf(process *tracefile.Process, attributes pcommon.Map) (*tracefile.Thread, string) {
	id, ok := attributes.Get(attributeThreadID)
	if !ok || id.Type() != pcommon.ValueTypeInt {
		return nil, ""
	}
	name := ""
	if v, ok := attributes.Get(attributeThreadName); ok {
		name = v.Str()
	}
	return r.writer.Thread(process, id.Int(), name), name
}

func severityOf(record plog.LogRecord) string {
	if record.SeverityNumber() == plog.SeverityNumberUnspecified {
		return ""
	}
	return strings.ToUpper(record.SeverityNumber().String())
}

// nameOfLogRecord returns the name of its event, or else the begin of its text.
func nameOfLogRecord(record plog.LogRecord, severity string) string {
	if name := record.EventName(); name != "" {
		return name
	}
	label := ""
	if record.Body().Type() == pcommon.ValueTypeStr {
		label, _, _ = strings.Cut(strings.TrimSpace(record.Body().Str()), "\n")
	}
	if len(label) > maxLabelBytes {
		label = strings.ToValidUTF8(label[:maxLabelBytes], "") + "…"
	}
	return cmp.Or(label, severity, unnamedLog)
}
