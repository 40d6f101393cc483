// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

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
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// The estimated memory of records and their values.
const (
	bytesOfRecord = 512
	bytesOfValue  = 64
)

// logParcel is a queued log record of a process.
type logParcel struct {
	origin *Origin
	record plog.LogRecord
	bytes  int
}

// Command is a command of a tracer with its pattern, in the form of attributes.
type Command struct{ Name, Pattern string }

// Logs is the queue of log records of all processes.
type Logs struct {
	queue *handover.Logs[logParcel]
	kit   *receiverkit.Kit
	// off are the disabled events.
	off      map[string]bool
	events   eventNames
	names    attributeNames
	problems [len(problemTexts)]string
}

// NewLogs opens the queue. Without a pipeline records are dropped. tracer is the namespace of events and attributes.
// off are the disabled events.
func NewLogs(run *receiverkit.Run, tracer string, off map[string]bool, limits receiverkit.LogLimits, dropped func(n int, reason string)) *Logs {
	l := &Logs{kit: run.Kit, off: off}
	l.events, l.names = newNames(tracer)
	l.problems = [...]string{
		session.Unmatched: l.events.unmatched, session.TimedOut: l.events.timedOut,
		session.Unsupported: l.events.unsupported, session.Refused: l.events.refused,
	}
	l.queue = receiverkit.NewLogs(run, limits, handover.QueueSettings[logParcel, plog.Logs]{
		MaxAtOnce: parcelsAtOnce,
		Size:      func(p *logParcel) (records, bytes int) { return 1, p.bytes },
		Make:      l.batch,
		Dropped:   dropped,
	})
	return l
}

// batch returns the batch for the pipeline.
func (l *Logs) batch(parcels []logParcel) plog.Logs {
	logs := plog.NewLogs()
	records := map[*Origin]plog.LogRecordSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := records[p.origin]
		if !ok {
			to = l.kit.AppendLogs(logs, p.origin.Resource)
			records[p.origin] = to
		}
		p.record.MoveTo(to.AppendEmpty())
	}
	return logs
}

// Forward forwards a log record of a process, if a pipeline accepts it. Its time is the present.
func (l *Logs) Forward(of *Origin, name, body string, severity plog.SeverityNumber, fill func(pcommon.Map)) {
	l.ForwardEvent(of, Event{Name: name, Body: text.Short(body), Severity: severity}, fill)
}

// Event is a log record without its attributes.
type Event struct {
	Name string
	// Body may be long, and have several lines.
	Body     string
	Severity plog.SeverityNumber
	// Time is the time of the event; zero means the present.
	Time time.Time
	// TraceID and SpanID identify the span that the event belongs to; zero means none.
	TraceID pcommon.TraceID
	SpanID  pcommon.SpanID
}

// ForwardEvent forwards a log record of an event at its own time, if a pipeline accepts it.
func (l *Logs) ForwardEvent(of *Origin, e Event, fill func(pcommon.Map)) {
	if l.queue == nil || l.off[e.Name] {
		return
	}
	now := l.kit.Now()
	if e.Time.IsZero() {
		e.Time = now
	}
	r := plog.NewLogRecord()
	r.SetTimestamp(pcommon.NewTimestampFromTime(e.Time))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	r.SetEventName(e.Name)
	r.SetSeverityNumber(e.Severity)
	r.SetSeverityText(e.Severity.String())
	r.Body().SetStr(text.Long(e.Body))
	r.SetTraceID(e.TraceID)
	r.SetSpanID(e.SpanID)
	fill(r.Attributes())
	l.queue.Enqueue(logParcel{origin: of, record: r, bytes: bytesOfRecord + len(r.Body().Str()) + bytesOfValues(r.Attributes())})
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

func (l *Logs) ServerConnected(of *Origin) {
	l.Forward(of, l.events.connected, "The server is connected", plog.SeverityNumberInfo, noAttributes)
}

// ServerRestarted reports that another process answers. The text says what the tracer knows about it.
func (l *Logs) ServerRestarted(of *Origin, text string) {
	l.Forward(of, l.events.restarted, text, plog.SeverityNumberWarn, noAttributes)
}

// ServerGone reports the end of a connection. At a shutdown of the collector it is no warning.
func (l *Logs) ServerGone(of *Origin, since time.Time, why error) {
	body, severity := "The server is gone", plog.SeverityNumberWarn
	if errors.Is(why, session.ErrShutdown) {
		body, severity = "The server is no longer asked", plog.SeverityNumberInfo
	}
	l.Forward(of, l.events.gone, body, severity, func(m pcommon.Map) {
		m.PutDouble(l.names.lifetime, l.kit.Now().Sub(since).Seconds())
		m.PutStr(l.names.err, text.Short(why.Error()))
	})
}

// problemTexts are the texts of problems. The verbs are the command and the pattern.
var problemTexts = [...]string{
	session.Unmatched:   "The pattern of %v matches nothing: %s",
	session.TimedOut:    "The session of %v timed out: %s",
	session.Unsupported: "The server does not support %[1]v",
	session.Refused:     "The server has refused %v: %s",
}

// Problem forwards a problem of a task.
func (l *Logs) Problem(of *Origin, p session.Problem, by Command, why error) {
	l.Forward(of, l.problems[p], fmt.Sprintf(problemTexts[p], by.Name, by.Pattern), plog.SeverityNumberWarn, func(m pcommon.Map) {
		l.PutCommand(m, by)
		if why != nil {
			m.PutStr(l.names.err, text.Short(why.Error()))
		}
	})
}

// PutCommand sets the attributes of a command.
func (l *Logs) PutCommand(m pcommon.Map, c Command) {
	m.PutStr(l.names.command, c.Name)
	receiverkit.PutNew(m, l.names.pattern, c.Pattern)
}

// maxFrames limits the frames of a stack in a log record.
const maxFrames = 1000

// Stack forwards a stack in Java's format.
func (l *Logs) Stack(of *Origin, by Command, stack *javamethods.CallStack) {
	if len(stack.Frames) == 0 {
		return
	}
	top := &stack.Frames[0]
	name := top.Class + "." + top.Method
	e := Event{Name: l.events.stack, Body: text.Short(name), Severity: plog.SeverityNumberInfo, Time: stack.Time, TraceID: stack.TraceID}
	l.ForwardEvent(of, e, func(m pcommon.Map) {
		l.PutCommand(m, by)
		receiverkit.PutNew(m, l.names.foreignTrace, text.Short(stack.ForeignTrace))
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

// Watch forwards a watched value.
func (l *Logs) Watch(of *Origin, by Command, w *javamethods.Watch) {
	e := Event{Name: l.events.watch, Body: w.Value, Severity: plog.SeverityNumberInfo, Time: w.Time, TraceID: w.TraceID, SpanID: w.SpanID}
	l.ForwardEvent(of, e, func(m pcommon.Map) {
		l.PutCommand(m, by)
		receiverkit.PutNew(m, l.names.foreignTrace, text.Short(w.ForeignTrace))
		m.PutStr(attributeFunction, text.Short(w.Class+"."+w.Method))
		receiverkit.PutNew(m, l.names.watchPoint, text.Short(w.Point))
		if w.HasCost {
			m.PutDouble(l.names.duration, w.Cost.Seconds())
		}
	})
}

// Record forwards a recorded call with its detail. Its time is the end of the call.
func (l *Logs) Record(of *Origin, by Command, call *session.Call) {
	name := text.Short(call.Class + "." + call.Method)
	e := Event{Name: l.events.record, Body: name, Severity: plog.SeverityNumberInfo, Time: call.Time}
	if call.Threw {
		e.Severity = plog.SeverityNumberError
	}
	l.ForwardEvent(of, e, func(m pcommon.Map) {
		l.PutCommand(m, by)
		m.PutStr(attributeFunction, name)
		m.PutInt(l.names.callIndex, call.Index)
		receiverkit.PutNew(m, l.names.callObject, text.Short(call.Object))
		if !call.Untimed {
			m.PutDouble(l.names.duration, call.Cost.Seconds())
		}
		putTexts(m, l.names.callParameters, call.Detail.Parameters)
		receiverkit.PutNew(m, l.names.callReturn, text.Short(call.Detail.Return))
		if call.Threw {
			first, _, _ := strings.Cut(call.Detail.Exception, "\n")
			kind, message, _ := strings.Cut(first, ": ")
			receiverkit.PutNew(m, attributeExceptionType, text.Short(kind))
			receiverkit.PutNew(m, attributeExceptionMessage, text.Short(message))
		}
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

// Class forwards a new or changed class.
func (l *Logs) Class(of *Origin, by Command, c *javamethods.Class, change process.Change) {
	l.Forward(of, l.events.class, c.Name, plog.SeverityNumberInfo, func(m pcommon.Map) {
		l.PutCommand(m, by)
		m.PutStr(l.names.change, change.String())
		m.PutStr(attributeClass, text.Short(c.Name))
		receiverkit.PutNew(m, l.names.codeSource, text.Short(c.CodeSource))
		putTexts(m, l.names.kinds, c.Kinds)
		receiverkit.PutNew(m, l.names.modifier, text.Short(c.Modifier))
		putTexts(m, l.names.annotations, c.Annotations)
		putTexts(m, l.names.interfaces, c.Interfaces)
		receiverkit.PutNew(m, l.names.super, text.Short(c.Super))
		putTexts(m, l.names.loaders, c.Loaders)
		fields := make([]string, 0, min(len(c.Fields), maxValues))
		for i := range c.Fields[:cap(fields)] {
			f := &c.Fields[i]
			fields = append(fields, strings.TrimSpace(f.Modifier+" "+f.Type+" "+f.Name))
		}
		putTexts(m, l.names.fields, fields)
	})
}

// Method forwards a new or changed method.
func (l *Logs) Method(of *Origin, by Command, method *javamethods.Method, change process.Change) {
	name := method.Class + "." + method.Name
	l.Forward(of, l.events.method, name+"("+strings.Join(method.Parameters, ", ")+")", plog.SeverityNumberInfo, func(m pcommon.Map) {
		l.PutCommand(m, by)
		m.PutStr(l.names.change, change.String())
		m.PutStr(attributeFunction, text.Short(name))
		receiverkit.PutNew(m, l.names.modifier, text.Short(method.Modifier))
		putTexts(m, l.names.annotations, method.Annotations)
		putTexts(m, l.names.parameters, method.Parameters)
		receiverkit.PutNew(m, l.names.returns, text.Short(method.Return))
		putTexts(m, l.names.exceptions, method.Exceptions)
	})
}

// ClassGone forwards that a class no longer exists, and MethodGone that a method does not.
func (l *Logs) ClassGone(of *Origin, by Command, name string) {
	l.gone(of, l.events.classGone, by, name)
}

func (l *Logs) MethodGone(of *Origin, by Command, name string) {
	l.gone(of, l.events.methodGone, by, name)
}

func (l *Logs) gone(of *Origin, event string, by Command, name string) {
	l.Forward(of, event, name, plog.SeverityNumberInfo, func(m pcommon.Map) { l.PutCommand(m, by) })
}
