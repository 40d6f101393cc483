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

// What records and their values take in memory, about.
const (
	bytesOfRecord = 512
	bytesOfValue  = 64
)

// logParcel is a log record of a process on its way to the pipeline.
type logParcel struct {
	origin *origin
	record plog.LogRecord
	bytes  int
}

// logRecords makes what the pipeline takes.
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

// say hands on a log record, if logs are wanted.
func (e *environment) say(of *origin, name, body string, severity plog.SeverityNumber, fill func(pcommon.Map)) {
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
	r.Body().SetStr(text(body))
	fill(r.Attributes())
	e.logs.Add(logParcel{origin: of, record: r, bytes: bytesOfRecord + len(body) + bytesOfValues(r.Attributes())})
}

// bytesOfValues is what attributes take in memory, about.
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

func (e *environment) saidConnected(of *origin) {
	e.say(of, eventConnected, "The server is connected", plog.SeverityNumberInfo, noAttributes)
}

func (e *environment) saidRestarted(of *origin) {
	e.say(of, eventRestarted, "The server was restarted", plog.SeverityNumberWarn, noAttributes)
}

// saidServerGone says that a server is not asked any more, which is nothing to warn of where
// the collector is shut down.
func (e *environment) saidServerGone(of *origin, since time.Time, why error) {
	body, severity := "The server is gone", plog.SeverityNumberWarn
	if errors.Is(why, errShutdown) {
		body, severity = "The server is no longer asked", plog.SeverityNumberInfo
	}
	e.say(of, eventServerGone, body, severity, func(m pcommon.Map) {
		m.PutDouble(attributeLifetime, e.now().Sub(since).Seconds())
		m.PutStr(attributeError, text(why.Error()))
	})
}

// saidUnmatched says that patterns matched no class or method.
func (e *environment) saidUnmatched(of *origin, t *task) {
	e.say(of, eventUnmatched, fmt.Sprintf("The pattern of %v matches nothing: %s", t.kind, t.pattern), plog.SeverityNumberWarn, t.put)
}

// saidTimedOut says that the server ended a session for its silence.
func (e *environment) saidTimedOut(of *origin, t *task) {
	e.say(of, eventTimedOut, fmt.Sprintf("The session of %v timed out: %s", t.kind, t.pattern), plog.SeverityNumberWarn, t.put)
}

func (e *environment) saidUnsupported(of *origin, t *task, why error) {
	e.say(of, eventUnsupported, fmt.Sprintf("The server does not support %v", t.kind), plog.SeverityNumberWarn, t.putWith(why))
}

// saidRefused says that what was taken to have begun was refused.
func (e *environment) saidRefused(of *origin, t *task, why error) {
	e.say(of, eventRefused, fmt.Sprintf("The server has refused %v: %s", t.kind, t.pattern), plog.SeverityNumberWarn, t.putWith(why))
}

// put says what was asked for.
func (t *task) put(m pcommon.Map) {
	m.PutStr(attributeCommand, t.kind.String())
	putNew(m, attributePattern, t.pattern)
}

// putWith says what was asked for, and what is wrong with it.
func (t *task) putWith(why error) func(pcommon.Map) {
	return func(m pcommon.Map) {
		t.put(m)
		m.PutStr(attributeError, text(why.Error()))
	}
}

// maxFrames is how many frames a stack has in a log record.
const maxFrames = 1000

// saidStack says from where a method was called, as Java writes stacks.
func (e *environment) saidStack(of *origin, t *task, stack *greys.CallStack) {
	if len(stack.Frames) == 0 {
		return
	}
	top := &stack.Frames[0]
	name := top.Class + "." + top.Method
	e.say(of, eventStack, name, plog.SeverityNumberInfo, func(m pcommon.Map) {
		t.put(m)
		putThread(m, &stack.Thread)
		m.PutStr(attributeFunction, text(name))
		putNew(m, attributeFile, text(top.File))
		if top.Line > 0 {
			m.PutInt(attributeLine, int64(top.Line))
		}
		var lines strings.Builder
		for i := range stack.Frames[:min(len(stack.Frames), maxFrames)] {
			writeFrame(&lines, &stack.Frames[i])
		}
		m.PutStr(attributeStacktrace, longText(lines.String()))
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

// maxValues is how many values an attribute has that is a list.
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
		into.AppendEmpty().SetStr(text(t))
	}
}

// saidClass says that a class was found, or is another than before.
func (e *environment) saidClass(of *origin, t *task, c *greys.Class, what change) {
	e.say(of, eventClass, c.Name, plog.SeverityNumberInfo, func(m pcommon.Map) {
		t.put(m)
		m.PutStr(attributeChange, what.String())
		m.PutStr(attributeClass, text(c.Name))
		putNew(m, attributeCodeSource, text(c.CodeSource))
		putTexts(m, attributeKinds, c.Kinds)
		putNew(m, attributeModifier, text(c.Modifier))
		putTexts(m, attributeAnnotations, c.Annotations)
		putTexts(m, attributeInterfaces, c.Interfaces)
		putNew(m, attributeSuper, text(c.Super))
		putTexts(m, attributeLoaders, c.Loaders)
		fields := make([]string, 0, min(len(c.Fields), maxValues))
		for i := range c.Fields[:cap(fields)] {
			f := &c.Fields[i]
			fields = append(fields, strings.TrimSpace(f.Modifier+" "+f.Type+" "+f.Name))
		}
		putTexts(m, attributeFields, fields)
	})
}

// saidMethod says that a method was found, or is another than before.
func (e *environment) saidMethod(of *origin, t *task, method *greys.Method, what change) {
	name := method.Class + "." + method.Name
	e.say(of, eventMethod, name+"("+strings.Join(method.Parameters, ", ")+")", plog.SeverityNumberInfo, func(m pcommon.Map) {
		t.put(m)
		m.PutStr(attributeChange, what.String())
		m.PutStr(attributeFunction, text(name))
		putNew(m, attributeModifier, text(method.Modifier))
		putTexts(m, attributeAnnotations, method.Annotations)
		putTexts(m, attributeParameters, method.Parameters)
		putNew(m, attributeReturn, text(method.Return))
		putTexts(m, attributeExceptions, method.Exceptions)
	})
}

// saidGone says that a class or a method is no longer there.
func (e *environment) saidGone(of *origin, t *task, name string) {
	event := eventClassGone
	if t.kind == askMethods {
		event = eventMethodGone
	}
	e.say(of, event, name, plog.SeverityNumberInfo, t.put)
}
