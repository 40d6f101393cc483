// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// Names of events.
const (
	eventConnected = "arthas.server.connected"
	eventRestarted = "arthas.server.restarted"
	eventGone      = "arthas.server.gone"
	eventUnmatched = "arthas.pattern.unmatched"
	eventFailed    = "arthas.command.failed"
	eventStack     = "arthas.stack"
	eventWatch     = "arthas.watch"
	eventRecord    = "arthas.record"
)

// Attributes of log records.
const (
	attributeCommand     = "arthas.command"
	attributePattern     = "arthas.pattern"
	attributeError       = "arthas.error.message"
	attributeDuration    = "arthas.duration"
	attributePoint       = "arthas.watch.point"
	attributeRecordIndex = "arthas.record.index"
	attributeObject      = "arthas.record.object"
	attributeParameters  = "arthas.record.parameters"
	attributeReturn      = "arthas.record.return"
	attributeConnected   = "arthas.server.connected_for"
)

// logParcel is a queued log record.
type logParcel struct {
	life   *life
	record plog.LogRecord
	bytes  int
}

// logOutput is the queue of log records.
type logOutput struct {
	queue *handover.Logs[logParcel]
	kit   *receiverkit.Kit
	// off are the disabled events.
	off map[string]bool
}

// newLogOutput opens the queue. Without a pipeline records are dropped.
func newLogOutput(run *receiverkit.Run, config *Config, own *counters.Counters) *logOutput {
	l := &logOutput{kit: run.Kit, off: eventswitch.Off(config.Events)}
	l.queue = receiverkit.NewLogs(run, config.Limits.LogLimits, handover.QueueSettings[logParcel, plog.Logs]{
		MaxAtOnce: parcelsAtOnce,
		Size:      func(p *logParcel) (records, bytes int) { return 1, p.bytes },
		Make:      l.batch,
		Dropped:   own.LogRecordsDropped,
	})
	return l
}

// batch returns the batch for the pipeline.
func (l *logOutput) batch(parcels []logParcel) plog.Logs {
	logs := plog.NewLogs()
	of := map[*life]plog.LogRecordSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := of[p.life]
		if !ok {
			to = l.kit.AppendLogs(logs, p.life.resource)
			of[p.life] = to
		}
		p.record.MoveTo(to.AppendEmpty())
	}
	return logs
}

// bytesOfRecord is the estimated memory of a record without its texts, and bytesOfValue that of a value.
const (
	bytesOfRecord = 512
	bytesOfValue  = 64
)

// entry is the begin of a log record.
type entry struct {
	event, body string
	severity    plog.SeverityNumber
	at          time.Time
}

// forward forwards a log record, if a pipeline accepts it.
func (l *logOutput) forward(of *life, e entry, fill func(pcommon.Map)) {
	if l.queue == nil || l.off[e.event] {
		return
	}
	now := l.kit.Now()
	if e.at.IsZero() {
		e.at = now
	}
	r := plog.NewLogRecord()
	r.SetTimestamp(pcommon.NewTimestampFromTime(e.at))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	r.SetEventName(e.event)
	r.SetSeverityNumber(e.severity)
	r.SetSeverityText(e.severity.String())
	r.Body().SetStr(text.Long(e.body))
	fill(r.Attributes())
	bytes := bytesOfRecord + len(r.Body().Str())
	for key, v := range r.Attributes().All() {
		bytes += bytesOfValue + len(key)
		switch v.Type() {
		case pcommon.ValueTypeStr:
			bytes += len(v.Str())
		case pcommon.ValueTypeSlice:
			for _, element := range v.Slice().All() {
				bytes += bytesOfValue + len(element.Str())
			}
		}
	}
	l.queue.Enqueue(logParcel{life: of, record: r, bytes: bytes})
}

func (l *logOutput) connected(of *life) {
	l.forward(of, entry{event: eventConnected, body: "The server is connected", severity: plog.SeverityNumberInfo}, func(pcommon.Map) {})
}

func (l *logOutput) restarted(of *life) {
	l.forward(of, entry{event: eventRestarted, body: "The program was started again", severity: plog.SeverityNumberWarn}, func(pcommon.Map) {})
}

// gone reports the loss of the server. At a shutdown of the collector it is no warning.
func (l *logOutput) gone(of *life, why error, isStopping bool) {
	e := entry{event: eventGone, body: "The server is gone", severity: plog.SeverityNumberWarn}
	if isStopping {
		e.body, e.severity = "The server is no longer asked", plog.SeverityNumberInfo
	}
	l.forward(of, e, func(m pcommon.Map) {
		m.PutDouble(attributeConnected, l.kit.Now().Sub(of.since).Seconds())
		m.PutStr(attributeError, text.Short(why.Error()))
	})
}

// problem reports that a task does not run.
func (l *logOutput) problem(of *life, t *task.Task, unmatched bool, why error) {
	e := entry{event: eventFailed, body: "The server did not run " + describe(t), severity: plog.SeverityNumberWarn}
	if unmatched {
		e.event, e.body = eventUnmatched, "The pattern matches nothing: "+describe(t)
	}
	l.forward(of, e, func(m pcommon.Map) {
		putTask(m, t)
		m.PutStr(attributeError, text.Short(why.Error()))
	})
}

func putTask(m pcommon.Map, t *task.Task) {
	m.PutStr(attributeCommand, t.Kind.String())
	m.PutStr(attributePattern, t.Pattern)
}

func putDuration(m pcommon.Map, cost arthas.Cost) {
	if cost.Known {
		m.PutDouble(attributeDuration, cost.Seconds())
	}
}

// maxFrames limits the frames of a stack.
const maxFrames = 1000

// stack forwards a stack in Java's format.
func (l *logOutput) stack(of *life, t *task.Task, stack *arthas.CallStack, received session.Received) {
	if len(stack.Frames) == 0 {
		return
	}
	top := &stack.Frames[0]
	name := top.Class + "." + top.Method
	l.forward(of, entry{eventStack, name, plog.SeverityNumberInfo, at(stack.Time, received)}, func(m pcommon.Map) {
		putTask(m, t)
		putThread(m, &stack.Thread)
		m.PutStr(attributeFunction, text.Short(name))
		receiverkit.PutNew(m, attributeFile, text.Short(top.File))
		if top.Line > 0 {
			m.PutInt(attributeLine, int64(top.Line))
		}
		var lines strings.Builder
		for i := range stack.Frames[:min(len(stack.Frames), maxFrames)] {
			f := &stack.Frames[i]
			place := fmt.Sprintf("%s:%d", f.File, f.Line)
			const native = -2
			switch {
			case f.Line == native:
				place = "Native Method"
			case f.File == "":
				place = "Unknown Source"
			case f.Line < 0:
				place = f.File
			}
			fmt.Fprintf(&lines, "\tat %s.%s(%s)\n", f.Class, f.Method, place)
		}
		m.PutStr(attributeStacktrace, text.Long(lines.String()))
	})
}

// watch forwards a watched value.
func (l *logOutput) watch(of *life, t *task.Task, w *arthas.Watch, received session.Received) {
	l.forward(of, entry{eventWatch, w.Value, plog.SeverityNumberInfo, at(w.Time, received)}, func(m pcommon.Map) {
		putTask(m, t)
		m.PutStr(attributeFunction, text.Short(w.Class+"."+w.Method))
		receiverkit.PutNew(m, attributePoint, text.Short(w.Point))
		putDuration(m, w.Cost)
	})
}

// record forwards a recorded call. Its time is the end of the call.
func (l *logOutput) record(of *life, t *task.Task, r *arthas.Record, received session.Received) {
	name := r.Class + "." + r.Method
	severity := plog.SeverityNumberInfo
	if r.Threw {
		severity = plog.SeverityNumberError
	}
	l.forward(of, entry{eventRecord, name, severity, at(r.Time, received)}, func(m pcommon.Map) {
		putTask(m, t)
		m.PutStr(attributeFunction, text.Short(name))
		m.PutInt(attributeRecordIndex, int64(r.Index))
		receiverkit.PutNew(m, attributeObject, text.Short(r.Object))
		putDuration(m, r.Cost)
		if len(r.Parameters) > 0 {
			into := m.PutEmptySlice(attributeParameters)
			for _, p := range r.Parameters {
				into.AppendEmpty().SetStr(text.Short(p))
			}
		}
		receiverkit.PutNew(m, attributeReturn, text.Short(r.Return))
		if r.Threw {
			first, _, _ := strings.Cut(r.Exception, "\n")
			kind, message, _ := strings.Cut(first, ": ")
			receiverkit.PutNew(m, attributeExceptionType, text.Short(kind))
			receiverkit.PutNew(m, attributeExceptionMessage, text.Short(message))
		}
	})
}
