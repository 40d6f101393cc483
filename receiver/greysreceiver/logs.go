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

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/task"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/text"
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

// The memory of records and their values, estimated.
const (
	bytesOfRecord = 512
	bytesOfValue  = 64
)

// logParcel is a log record of a process in the queue.
type logParcel struct {
	origin *origin
	record plog.LogRecord
	bytes  int
}

// logRecords makes the batch for the pipeline.
func (e *environment) logRecords(parcels []logParcel) plog.Logs {
	logs := plog.NewLogs()
	records := map[*origin]plog.LogRecordSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := records[p.origin]
		if !ok {
			resource := logs.ResourceLogs().AppendEmpty()
			p.origin.resource.CopyTo(resource.Resource())
			scope := resource.ScopeLogs().AppendEmpty()
			e.setScope(scope.Scope())
			resource.SetSchemaUrl(schema.URL)
			scope.SetSchemaUrl(schema.URL)
			to = scope.LogRecords()
			records[p.origin] = to
		}
		p.record.MoveTo(to.AppendEmpty())
	}
	return logs
}

// record forwards a log record, if a pipeline takes it.
func (o *output) record(name, body string, severity plog.SeverityNumber, fill func(pcommon.Map)) {
	o.env.forwardLog(o.origin, name, body, severity, fill)
}

// forwardLog forwards a log record of a process, if a pipeline takes it.
func (e *environment) forwardLog(of *origin, name, body string, severity plog.SeverityNumber, fill func(pcommon.Map)) {
	if e.logs == nil || e.eventsOff[name] {
		return
	}
	r := plog.NewLogRecord()
	now := pcommon.NewTimestampFromTime(e.now())
	r.SetTimestamp(now)
	r.SetObservedTimestamp(now)
	r.SetEventName(name)
	r.SetSeverityNumber(severity)
	r.SetSeverityText(severity.String())
	r.Body().SetStr(text.Short(body))
	fill(r.Attributes())
	e.logs.Add(logParcel{origin: of, record: r, bytes: bytesOfRecord + len(body) + bytesOfValues(r.Attributes())})
}

// bytesOfValues is the memory of attributes, estimated.
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

func (o *output) connected() {
	o.record(eventConnected, "The server is connected", plog.SeverityNumberInfo, noAttributes)
}

func (o *output) restarted() {
	o.record(eventRestarted, "The server was restarted", plog.SeverityNumberWarn, noAttributes)
}

// gone forwards that the server is not asked any more. A shutdown of the collector is no warning.
func (o *output) gone(since time.Time, why error) {
	body, severity := "The server is gone", plog.SeverityNumberWarn
	if errors.Is(why, session.ErrShutdown) {
		body, severity = "The server is no longer asked", plog.SeverityNumberInfo
	}
	o.record(eventServerGone, body, severity, func(m pcommon.Map) {
		m.PutDouble(attributeLifetime, o.env.now().Sub(since).Seconds())
		m.PutStr(attributeError, text.Short(why.Error()))
	})
}

// problems are the log records of problems of tasks: their event names and texts, with the command
// and the pattern.
var problems = [...]struct{ event, text string }{
	session.Unmatched:   {eventUnmatched, "The pattern of %v matches nothing: %s"},
	session.TimedOut:    {eventTimedOut, "The session of %v timed out: %s"},
	session.Unsupported: {eventUnsupported, "The server does not support %[1]v"},
	session.Refused:     {eventRefused, "The server has refused %v: %s"},
}

// Problem forwards a problem of a task.
func (o *output) Problem(p session.Problem, t *task.Task, why error) {
	of := problems[p]
	o.record(of.event, fmt.Sprintf(of.text, t.Kind, t.Pattern), plog.SeverityNumberWarn, func(m pcommon.Map) {
		putTask(m, t)
		if why != nil {
			m.PutStr(attributeError, text.Short(why.Error()))
		}
	})
}

// putTask puts the command and the pattern of a task.
func putTask(m pcommon.Map, t *task.Task) {
	m.PutStr(attributeCommand, t.Kind.String())
	putNew(m, attributePattern, t.Pattern)
}

// maxFrames bounds the frames of a stack in a log record.
const maxFrames = 1000

// saidStack says from where a method was called, as Java writes stacks.
// Stack forwards a stack.
func (o *output) Stack(t *task.Task, stack *greys.CallStack) {
	if len(stack.Frames) == 0 {
		return
	}
	top := &stack.Frames[0]
	name := top.Class + "." + top.Method
	o.record(eventStack, name, plog.SeverityNumberInfo, func(m pcommon.Map) {
		putTask(m, t)
		putThread(m, &stack.Thread)
		m.PutStr(attributeFunction, text.Short(name))
		putNew(m, attributeFile, text.Short(top.File))
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

// nativeLine is the line of a frame whose method is a native one.
const nativeLine = -2

// writeFrame writes a frame as Java does.
func writeFrame(to *strings.Builder, f *greys.Frame) {
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

// maxValues bounds the values of an attribute that is a list.
const maxValues = 1000

// putTexts puts a list that is not empty.
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

// Class forwards a class that is new, or has changed.
func (o *output) Class(t *task.Task, c *greys.Class, change process.Change) {
	o.record(eventClass, c.Name, plog.SeverityNumberInfo, func(m pcommon.Map) {
		putTask(m, t)
		m.PutStr(attributeChange, change.String())
		m.PutStr(attributeClass, text.Short(c.Name))
		putNew(m, attributeCodeSource, text.Short(c.CodeSource))
		putTexts(m, attributeKinds, c.Kinds)
		putNew(m, attributeModifier, text.Short(c.Modifier))
		putTexts(m, attributeAnnotations, c.Annotations)
		putTexts(m, attributeInterfaces, c.Interfaces)
		putNew(m, attributeSuper, text.Short(c.Super))
		putTexts(m, attributeLoaders, c.Loaders)
		fields := make([]string, 0, min(len(c.Fields), maxValues))
		for i := range c.Fields[:cap(fields)] {
			f := &c.Fields[i]
			fields = append(fields, strings.TrimSpace(f.Modifier+" "+f.Type+" "+f.Name))
		}
		putTexts(m, attributeFields, fields)
	})
}

// Method forwards a method that is new, or has changed.
func (o *output) Method(t *task.Task, method *greys.Method, change process.Change) {
	name := method.Class + "." + method.Name
	o.record(eventMethod, name+"("+strings.Join(method.Parameters, ", ")+")", plog.SeverityNumberInfo, func(m pcommon.Map) {
		putTask(m, t)
		m.PutStr(attributeChange, change.String())
		m.PutStr(attributeFunction, text.Short(name))
		putNew(m, attributeModifier, text.Short(method.Modifier))
		putTexts(m, attributeAnnotations, method.Annotations)
		putTexts(m, attributeParameters, method.Parameters)
		putNew(m, attributeReturn, text.Short(method.Return))
		putTexts(m, attributeExceptions, method.Exceptions)
	})
}

// Gone forwards that a class or a method is no longer there.
func (o *output) Gone(t *task.Task, name string) {
	event := eventClassGone
	if t.Kind == task.Methods {
		event = eventMethodGone
	}
	o.record(event, name, plog.SeverityNumberInfo, func(m pcommon.Map) { putTask(m, t) })
}
