// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
)

// Names of events.
const (
	eventConnected   = "greys.server.connected"
	eventRestarted   = "greys.server.restarted"
	eventServerGone  = "greys.server.gone"
	eventStack       = "greys.stack"
	eventClass       = "greys.class"
	eventMethod      = "greys.method"
	eventClassGone   = "greys.class.gone"
	eventMethodGone  = "greys.method.gone"
	eventUnmatched   = "greys.pattern.unmatched"
	eventTimedOut    = "greys.session.timed_out"
	eventUnsupported = "greys.command.unsupported"
	eventRefused     = "greys.command.refused"
)

// Attributes of log records.
const (
	attributeCommand     = "greys.command"
	attributePattern     = "greys.pattern"
	attributeChange      = "greys.change"
	attributeClass       = "java.class"
	attributeModifier    = "greys.modifier"
	attributeAnnotations = "greys.annotations"
	attributeCodeSource  = "greys.class.code_source"
	attributeKinds       = "greys.class.kinds"
	attributeSuper       = "greys.class.super"
	attributeInterfaces  = "greys.class.interfaces"
	attributeLoaders     = "greys.class.loaders"
	attributeFields      = "greys.class.fields"
	attributeParameters  = "greys.method.parameters"
	attributeReturn      = "greys.method.return"
	attributeExceptions  = "greys.method.exceptions"
	attributeError       = "greys.error.message"
	attributeLifetime    = "greys.server.connected_for"
)

// The estimated memory of records and their values.
const (
	bytesOfRecord = 512
	bytesOfValue  = 64
)

// logParcel is a queued log record of a process.
type logParcel struct {
	origin *origin
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
	records := map[*origin]plog.LogRecordSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := records[p.origin]
		if !ok {
			to = l.kit.AppendLogs(logs, p.origin.resource)
			records[p.origin] = to
		}
		p.record.MoveTo(to.AppendEmpty())
	}
	return logs
}

// forward forwards a log record of a process, if a pipeline accepts it.
func (l *logOutput) forward(of *origin, name, body string, severity plog.SeverityNumber, fill func(pcommon.Map)) {
	if l.queue == nil || l.off[name] {
		return
	}
	r := plog.NewLogRecord()
	now := pcommon.NewTimestampFromTime(l.kit.Now())
	r.SetTimestamp(now)
	r.SetObservedTimestamp(now)
	r.SetEventName(name)
	r.SetSeverityNumber(severity)
	r.SetSeverityText(severity.String())
	r.Body().SetStr(text.Short(body))
	fill(r.Attributes())
	l.queue.Enqueue(logParcel{origin: of, record: r, bytes: bytesOfRecord + len(body) + bytesOfValues(r.Attributes())})
}

// bytesOfValues returns the estimated memory of attributes.
func bytesOfValues(m pcommon.Map) int {
	bytes := 0
	for _, v := range m.All() {
		bytes += bytesOfValue
		switch v.Type() {
		case pcommon.ValueTypeStr:
			bytes += len(v.Str())
		case pcommon.ValueTypeSlice:
			for _, of := range v.Slice().All() {
				bytes += bytesOfValue + len(of.Str())
			}
		}
	}
	return bytes
}

func noAttributes(pcommon.Map) {}

func (l *logOutput) serverConnected(of *origin) {
	l.forward(of, eventConnected, "The server is connected", plog.SeverityNumberInfo, noAttributes)
}

func (l *logOutput) serverRestarted(of *origin) {
	l.forward(of, eventRestarted, "The server was restarted", plog.SeverityNumberWarn, noAttributes)
}

// serverGone reports the end of a connection. At a shutdown of the collector it is no warning.
func (l *logOutput) serverGone(of *origin, since time.Time, why error) {
	body, severity := "The server is gone", plog.SeverityNumberWarn
	if errors.Is(why, session.ErrShutdown) {
		body, severity = "The server is no longer asked", plog.SeverityNumberInfo
	}
	l.forward(of, eventServerGone, body, severity, func(m pcommon.Map) {
		m.PutDouble(attributeLifetime, l.kit.Now().Sub(since).Seconds())
		m.PutStr(attributeError, text.Short(why.Error()))
	})
}

// problems are the event names and texts of problems. The verbs are the command and the pattern.
var problems = [...]struct{ event, text string }{
	session.Unmatched:   {eventUnmatched, "The pattern of %v matches nothing: %s"},
	session.TimedOut:    {eventTimedOut, "The session of %v timed out: %s"},
	session.Unsupported: {eventUnsupported, "The server does not support %[1]v"},
	session.Refused:     {eventRefused, "The server has refused %v: %s"},
}

// problem forwards a problem of a task.
func (l *logOutput) problem(of *origin, p session.Problem, t *task.Task, why error) {
	record := problems[p]
	l.forward(of, record.event, fmt.Sprintf(record.text, t.Kind, t.Pattern), plog.SeverityNumberWarn, func(m pcommon.Map) {
		putTask(m, t)
		if why != nil {
			m.PutStr(attributeError, text.Short(why.Error()))
		}
	})
}

// putTask sets the attributes of a task: its command and its pattern.
func putTask(m pcommon.Map, t *task.Task) {
	m.PutStr(attributeCommand, t.Kind.String())
	receiverkit.PutNew(m, attributePattern, t.Pattern)
}

// maxFrames limits the frames of a stack in a log record.
const maxFrames = 1000

// stack forwards a stack in Java's format.
func (l *logOutput) stack(of *origin, t *task.Task, stack *javamethods.CallStack) {
	if len(stack.Frames) == 0 {
		return
	}
	top := &stack.Frames[0]
	name := top.Class + "." + top.Method
	l.forward(of, eventStack, name, plog.SeverityNumberInfo, func(m pcommon.Map) {
		putTask(m, t)
		putThread(m, &stack.Thread)
		m.PutStr(attributeFunction, text.Short(name))
		receiverkit.PutNew(m, attributeFile, text.Short(top.File))
		if top.Line > 0 {
			m.PutInt(attributeLine, int64(top.Line))
		}
		var lines strings.Builder
		for i := range stack.Frames[:min(len(stack.Frames), maxFrames)] {
			writeFrame(&lines, &stack.Frames[i])
		}
		m.PutStr(attributeStacktrace, text.Long(lines.String()))
	})
}

// nativeLine is the line number of native methods.
const nativeLine = -2

// writeFrame writes a frame in Java's format.
func writeFrame(to *strings.Builder, f *javamethods.Frame) {
	fmt.Fprintf(to, "\tat %s.%s(", f.Class, f.Method)
	switch {
	case f.Line == nativeLine:
		to.WriteString("Native Method")
	case f.File == "":
		to.WriteString("Unknown Source")
	case f.Line < 0:
		to.WriteString(f.File)
	default:
		fmt.Fprintf(to, "%s:%d", f.File, f.Line)
	}
	to.WriteString(")\n")
}

// maxValues limits the values of a list attribute.
const maxValues = 1000

// putTexts sets a list attribute, unless the list is empty.
func putTexts(m pcommon.Map, key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	texts = texts[:min(len(texts), maxValues)]
	into := m.PutEmptySlice(key)
	into.EnsureCapacity(len(texts))
	for _, t := range texts {
		into.AppendEmpty().SetStr(text.Short(t))
	}
}

// class forwards a new or changed class.
func (l *logOutput) class(of *origin, t *task.Task, c *javamethods.Class, change process.Change) {
	l.forward(of, eventClass, c.Name, plog.SeverityNumberInfo, func(m pcommon.Map) {
		putTask(m, t)
		m.PutStr(attributeChange, change.String())
		m.PutStr(attributeClass, text.Short(c.Name))
		receiverkit.PutNew(m, attributeCodeSource, text.Short(c.CodeSource))
		putTexts(m, attributeKinds, c.Kinds)
		receiverkit.PutNew(m, attributeModifier, text.Short(c.Modifier))
		putTexts(m, attributeAnnotations, c.Annotations)
		putTexts(m, attributeInterfaces, c.Interfaces)
		receiverkit.PutNew(m, attributeSuper, text.Short(c.Super))
		putTexts(m, attributeLoaders, c.Loaders)
		fields := make([]string, 0, min(len(c.Fields), maxValues))
		for i := range c.Fields[:cap(fields)] {
			f := &c.Fields[i]
			fields = append(fields, strings.TrimSpace(f.Modifier+" "+f.Type+" "+f.Name))
		}
		putTexts(m, attributeFields, fields)
	})
}

// method forwards a new or changed method.
func (l *logOutput) method(of *origin, t *task.Task, method *javamethods.Method, change process.Change) {
	name := method.Class + "." + method.Name
	l.forward(of, eventMethod, name+"("+strings.Join(method.Parameters, ", ")+")", plog.SeverityNumberInfo, func(m pcommon.Map) {
		putTask(m, t)
		m.PutStr(attributeChange, change.String())
		m.PutStr(attributeFunction, text.Short(name))
		receiverkit.PutNew(m, attributeModifier, text.Short(method.Modifier))
		putTexts(m, attributeAnnotations, method.Annotations)
		putTexts(m, attributeParameters, method.Parameters)
		receiverkit.PutNew(m, attributeReturn, text.Short(method.Return))
		putTexts(m, attributeExceptions, method.Exceptions)
	})
}

// gone forwards that a class or a method no longer exists.
func (l *logOutput) gone(of *origin, t *task.Task, name string) {
	event := eventClassGone
	if t.Kind == task.Methods {
		event = eventMethodGone
	}
	l.forward(of, event, name, plog.SeverityNumberInfo, func(m pcommon.Map) { putTask(m, t) })
}
