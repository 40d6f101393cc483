// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// Names of events that only Arthas has. Package signals has the others.
const (
	eventWatch  = "arthas.watch"
	eventRecord = "arthas.record"
)

// Attributes of log records.
const (
	attributeFunction         = "code.function.name"
	attributeExceptionType    = "exception.type"
	attributeExceptionMessage = "exception.message"

	attributeDuration    = "arthas.duration"
	attributePoint       = "arthas.watch.point"
	attributeRecordIndex = "arthas.record.index"
	attributeObject      = "arthas.record.object"
	attributeParameters  = "arthas.record.parameters"
	attributeReturn      = "arthas.record.return"
)

// commandOf returns the command of a task for log records.
func commandOf(t *task.Task) signals.Command {
	return signals.Command{Name: t.Kind.String(), Pattern: t.Pattern}
}

func putDuration(m pcommon.Map, cost arthas.Cost) {
	if cost.Known {
		m.PutDouble(attributeDuration, cost.Seconds())
	}
}

// stack forwards a stack.
func (o *output) stack(l *life, t *task.Task, stack *arthas.CallStack, received session.Received) {
	o.env.logs.Stack(l.origin, commandOf(t), &javamethods.CallStack{Time: at(stack.Time, received), Thread: stack.Thread, Frames: stack.Frames})
}

// watch forwards a watched value.
func (o *output) watch(l *life, t *task.Task, w *arthas.Watch, received session.Received) {
	e := signals.Event{Name: eventWatch, Body: w.Value, Severity: plog.SeverityNumberInfo, Time: at(w.Time, received)}
	o.env.logs.ForwardEvent(l.origin, e, func(m pcommon.Map) {
		o.env.logs.PutCommand(m, commandOf(t))
		m.PutStr(attributeFunction, text.Short(w.Class+"."+w.Method))
		receiverkit.PutNew(m, attributePoint, text.Short(w.Point))
		putDuration(m, w.Cost)
	})
}

// record forwards a recorded call. Its time is the end of the call.
func (o *output) record(l *life, t *task.Task, r *arthas.Record, received session.Received) {
	name := text.Short(r.Class + "." + r.Method)
	e := signals.Event{Name: eventRecord, Body: name, Severity: plog.SeverityNumberInfo, Time: at(r.Time, received)}
	if r.Threw {
		e.Severity = plog.SeverityNumberError
	}
	o.env.logs.ForwardEvent(l.origin, e, func(m pcommon.Map) {
		o.env.logs.PutCommand(m, commandOf(t))
		m.PutStr(attributeFunction, name)
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
