// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Attributes of log records by the semantic conventions.
const (
	attributeThreadID   = "thread.id"
	attributeThreadName = "thread.name"
	attributeFunction   = "code.function.name"
	attributeFile       = "code.file.path"
	attributeLine       = "code.line.number"
)

// attributeCPU is the CPU that an event was recorded on, named as the tracer does.
const attributeCPU = "cpu_id"

// recordPlan is how events of a class become log records.
type recordPlan struct {
	name string
	// severity is that of the class, or, where a record has a level of its own,
	// what severityOf says of it.
	severity   severity
	level      number
	severityOf func(level int64) severity

	// logger and message are those of a log record that a program wrote; without them
	// the body is the event's name.
	logger, message text
	// class and function together are where in the code it was written.
	class, function, file text
	line                  *ctf.Field
	thread                number
	// threadName is the first of these that an event has.
	threadName [2]text
	// hasThread and hasPlace say that there are such fields, of the thread and of the
	// place in the code.
	hasThread, hasPlace bool

	columns []column
	// beyond is how many values have no column, bytes what a record takes beside its values,
	// and most what it may take with them.
	beyond, bytes, most int
	// cpu is the number of the CPU, in the packet's context.
	cpu number
	// attributes is how many attributes a record has at most.
	attributes int
}

// loggerFields are the fields of an event that is a log record of some logging
// library.
type loggerFields struct {
	// runtime is what programs with that library run on.
	runtime                     string
	severityOf                  func(level int64) severity
	message, logger, level      string
	class, function, file, line string
	thread, threadName          string
}

// loggers are the events that are log records.
var loggers = map[string]loggerFields{
	julEvent: {
		runtime: "java", severityOf: julSeverity, message: "msg", logger: "logger_name", level: "int_loglevel",
		class: "class_name", function: "method_name", thread: "int_threadid",
	},
	"lttng_log4j:event":  log4jFields(log4jSeverity),
	"lttng_log4j2:event": log4jFields(log4j2Severity),
	"lttng_python:event": {
		runtime: "python", severityOf: pythonSeverity, message: "msg", logger: "logger_name", level: "int_loglevel",
		function: "funcName", line: "lineno", thread: "thread", threadName: "threadName",
	},
}

func log4jFields(severityOf func(level int64) severity) loggerFields {
	return loggerFields{
		runtime: "java", severityOf: severityOf, message: "msg", logger: "logger_name", level: "int_loglevel",
		class: "class_name", function: "method_name", file: "filename", line: "line_number", threadName: "thread_name",
	}
}

// Events of LTTng-UST's tracef() and tracelog(), which have a text, and tracelog() the
// place in the code.
const (
	tracefEvent      = "lttng_ust_tracef:event"
	providerTracelog = "lttng_ust_tracelog"
)

// newRecordPlan works out how events of a class become log records of at most so many
// bytes.
func newRecordPlan(class *ctf.EventClass, p *plan, most int) *recordPlan {
	r := &recordPlan{bytes: bytesOfRecord, most: most, thread: p.vtid, threadName: [2]text{p.procname}}
	if class.Meta.HasLogLevel {
		r.severity = tracepointSeverity(class.Meta.LogLevel)
	}
	used := map[*ctf.Field]bool{p.vpid.field: true, p.vtid.field: true, p.procname.field: true}
	provider, _ := splitName(class.Name)
	if fields, ok := loggers[class.Name]; ok {
		r.take(class, fields, used)
	} else if class.Name == tracefEvent || provider == providerTracelog {
		r.take(class, loggerFields{message: "msg", function: "func", file: "file", line: "line"}, used)
	}
	r.addName(class.Name)
	r.addColumns(class, used)
	r.cpu = numberAt(class, metadata.PacketContext, attributeCPU)
	r.hasThread = r.thread.there() || r.threadName[0].there() || r.threadName[1].there()
	r.hasPlace = r.function.there() || r.file.there() || r.line != nil
	r.attributes = r.count()
	return r
}

// count is how many attributes a record has at most.
func (r *recordPlan) count() int {
	n := len(r.columns)
	for _, there := range [...]bool{
		r.thread.there(), r.threadName[0].there() || r.threadName[1].there(),
		r.function.there(), r.file.there(), r.line != nil, r.cpu.there(),
	} {
		if there {
			n++
		}
	}
	return n
}

// take takes the fields of a log record out of those that become attributes under
// their own names.
func (r *recordPlan) take(class *ctf.EventClass, f loggerFields, used map[*ctf.Field]bool) {
	field := func(name string) text {
		t := text{}
		if name != "" {
			t = textAt(class, metadata.EventFields, name)
			used[t.field] = true
		}
		return t
	}
	r.message = field(f.message)
	if !r.message.there() {
		return
	}
	r.logger, r.class, r.function, r.file = field(f.logger), field(f.class), field(f.function), field(f.file)
	if f.severityOf != nil {
		if r.level = numberAt(class, metadata.EventFields, f.level); r.level.there() {
			r.severityOf = f.severityOf
			used[r.level.field] = true
		}
	}
	if f.line != "" {
		r.line = class.Field(metadata.EventFields, f.line)
		used[r.line] = true
	}
	if f.runtime != "" {
		// A managed thread has the runtime's number. The system's keeps its own name.
		delete(used, r.thread.field)
		r.thread = number{}
	}
	if f.thread != "" {
		r.thread = numberAt(class, metadata.EventFields, f.thread)
		used[r.thread.field] = true
	}
	if f.threadName != "" {
		// The name that the program gives its thread says more than the kernel's.
		r.threadName = [2]text{field(f.threadName), r.threadName[0]}
	}
}

// addName gives records their name, which is their body, too, where there is no message.
func (r *recordPlan) addName(name string) {
	if len(name) > maxNameBytes {
		name = strings.ToValidUTF8(name[:maxNameBytes], "")
		r.beyond++
	}
	r.name = name
	r.bytes += len(name)
	if !r.message.there() {
		r.bytes += len(name)
	}
}

// addColumns makes attributes of the fields and contexts that are not used otherwise.
// Where a context has the name of a field, it has the word context before it.
func (r *recordPlan) addColumns(class *ctf.EventClass, used map[*ctf.Field]bool) {
	taken := map[string]bool{}
	for _, scope := range [...]metadata.Scope{metadata.EventFields, metadata.EventContext, metadata.EventCommonContext} {
		root := class.Scope(scope)
		if root == nil || root.Kind != ctf.Struct {
			continue
		}
		passed := lengths(root)
		for _, f := range root.Members {
			if used[f] || f.Name == "" || passed[f.Name] {
				continue
			}
			key := f.Name
			if taken[key] {
				key = "context." + key
			}
			taken[key] = true
			if len(key) > maxNameBytes || len(r.columns) >= maxAttributes || r.bytes+len(key) > r.most {
				r.beyond++
				continue
			}
			r.columns = append(r.columns, newColumn(key, f))
			r.bytes += len(key)
		}
	}
}

// write writes the record, all but its times, and says how large it is.
func (r *recordPlan) write(l plog.LogRecord, e *ctf.Event, packet *ctf.Packet, known *texts) (size recordSize) {
	v := &e.Values
	size = recordSize{bytes: r.bytes, most: r.most, leftOut: r.beyond}
	l.SetEventName(r.name)
	s := r.severity
	if r.severityOf != nil {
		if level, ok := r.level.get(v); ok {
			s = r.severityOf(level)
			if s.text == "" {
				s.text = strconv.FormatInt(level, 10)
			}
		}
	}
	l.SetSeverityNumber(s.number)
	l.SetSeverityText(s.text)
	if r.message.there() {
		l.Body().SetStr(size.text(validText(v, r.message.field)))
	} else {
		l.Body().SetStr(r.name)
	}
	attributes := l.Attributes()
	attributes.EnsureCapacity(r.attributes)
	if r.hasThread {
		r.writeThread(attributes, v, known, &size)
	}
	if r.hasPlace {
		r.writePlace(attributes, v, known, &size)
	}
	if cpu, ok := r.cpu.get(&packet.Values); ok {
		attributes.PutInt(attributeCPU, cpu)
	}
	for i := range r.columns {
		r.columns[i].write(attributes, v, known, &size)
	}
	if size.leftOut > 0 {
		l.SetDroppedAttributesCount(uint32(size.leftOut))
	}
	size.bytes += attributes.Len() * bytesOfValue
	return size
}

// writeThread writes the thread.
func (r *recordPlan) writeThread(attributes pcommon.Map, v *ctf.Values, known *texts, size *recordSize) {
	if id, ok := r.thread.get(v); ok {
		attributes.PutInt(attributeThreadID, id)
	}
	for _, name := range r.threadName {
		if b := name.get(v); len(b) > 0 {
			attributes.PutStr(attributeThreadName, known.text(size.name(b)))
			return
		}
	}
}

// writePlace writes the place in the code.
func (r *recordPlan) writePlace(attributes pcommon.Map, v *ctf.Values, known *texts, size *recordSize) {
	if function := r.function.get(v); len(function) > 0 {
		attributes.PutStr(attributeFunction, known.method(size.name(r.class.get(v)), size.name(function)))
	}
	if file := r.file.get(v); len(file) > 0 {
		attributes.PutStr(attributeFile, known.text(size.name(file)))
	}
	if r.line != nil && v.Present(r.line) {
		writeLine(attributes, v, r.line)
	}
}

// writeLine writes a line number, which some tracers send as text.
func writeLine(attributes pcommon.Map, v *ctf.Values, f *ctf.Field) {
	switch f.Kind {
	case ctf.Int, ctf.Uint:
		attributes.PutInt(attributeLine, v.Int(f))
	case ctf.Text:
		if n, err := strconv.ParseInt(string(v.Text(f)), 10, 64); err == nil {
			attributes.PutInt(attributeLine, n)
		}
	}
}
