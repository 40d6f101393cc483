// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Attributes of log records in the semantic conventions.
const (
	attributeThreadID   = "thread.id"
	attributeThreadName = "thread.name"
	attributeFunction   = "code.function.name"
	attributeFile       = "code.file.path"
	attributeLine       = "code.line.number"
)

// RecordPlan determines how events of a class become log records.
type RecordPlan struct {
	// Logger is the name of the logger.
	Logger Text

	// name is the name of the records. Without a message it is also their body.
	name knownText
	// severity is the severity of the class. If records have a level of their own, severityOf maps
	// it.
	severity   severity
	level      Number
	severityOf func(level int64) severity

	// message is the message of a log record of a program. Without it the event's name is the body.
	message Text
	// class, function, file and line are the place in the code.
	class, function, file Text
	line                  *ctf.Field
	thread                Number
	// threadName: the first of these that the event has.
	threadName [2]Text
	// hasThread and hasPlace are set if the class has fields for the thread and for the place in the code.
	hasThread, hasPlace bool

	columns []column
	// packetColumns are fields of the packet's context, such as the number of the CPU.
	packetColumns []column
	// beyond is the number of values without a column. bytes is the size of a record without its
	// values, and most its maximum size with them.
	beyond, bytes, most int
	// hexadecimal is Records.Hexadecimal.
	hexadecimal bool
	// attributes is the maximum number of attributes of a record.
	attributes int
}

func newRecordPlan(class *ctf.EventClass, contexts *Contexts, isKernel bool, records Records) *RecordPlan {
	r := &RecordPlan{bytes: recordBytes, most: records.MaxBytes, hexadecimal: records.Hexadecimal, thread: contexts.TID, threadName: [2]Text{contexts.ThreadName}}
	if class.Meta.HasLogLevel {
		r.severity = tracepointSeverity(class.Meta.LogLevel)
	}
	used := map[*ctf.Field]bool{contexts.PID.field: true, contexts.TID.field: true, contexts.ThreadName.field: true}
	if fields, ok := logFieldsOf(class.Name); ok {
		r.useLogFields(class, fields, used)
	}
	r.setName(class.Name)
	hasThreadName := r.threadName[0].exists() || r.threadName[1].exists()
	r.hasThread = r.thread.exists() || hasThreadName
	r.hasPlace = r.function.exists() || r.file.exists() || r.line != nil
	// Other events of a kernel show the thread.
	shown := isKernel && !r.hasThread
	taken := map[string]bool{}
	for key, isTaken := range map[string]bool{
		attributeThreadID: r.thread.exists() || shown, attributeThreadName: hasThreadName || shown,
		attributeFunction: r.function.exists(), attributeFile: r.file.exists(), attributeLine: r.line != nil,
	} {
		if isTaken {
			taken[key] = true
		}
	}
	r.attributes = len(taken)
	r.appendColumns(class, used, taken, records.EnumerationNumbers)
	r.attributes += len(r.columns) + len(r.packetColumns)
	return r
}

// useLogFields uses the fields of a program's log record, which then do not become attributes under
// their own names.
func (r *RecordPlan) useLogFields(class *ctf.EventClass, f logFields, used map[*ctf.Field]bool) {
	field := func(name string) Text {
		t := Text{}
		if name != "" {
			t = textAt(class, metadata.EventFields, name)
			t.modified = f.runtime == runtimeJava
			used[t.field] = true
		}
		return t
	}
	r.message = field(f.message)
	if !r.message.exists() {
		return
	}
	r.Logger, r.class, r.function, r.file = field(f.logger), field(f.class), field(f.function), field(f.file)
	if f.severityOf != nil {
		if r.level = numberAt(class, metadata.EventFields, f.level); r.level.exists() {
			r.severityOf = f.severityOf
			used[r.level.field] = true
		}
	}
	if f.line != "" {
		r.line = class.Field(metadata.EventFields, f.line)
		used[r.line] = true
	}
	if f.runtime != "" {
		// A managed thread has the runtime's number. The system's number stays an attribute.
		delete(used, r.thread.field)
		r.thread = Number{}
	}
	if f.thread != "" {
		r.thread = numberAt(class, metadata.EventFields, f.thread)
		used[r.thread.field] = true
	}
	if f.threadName != "" {
		// The program's name of the thread is better than the kernel's.
		r.threadName = [2]Text{field(f.threadName), r.threadName[0]}
	}
}

// setName sets the records' name, which is also their body if they have no message.
func (r *RecordPlan) setName(name string) {
	if len(name) > MaxNameBytes {
		name = strings.ToValidUTF8(name[:MaxNameBytes], "")
		r.beyond++
	}
	r.name.text = name
	r.bytes += len(name)
	if !r.message.exists() {
		r.bytes += len(name)
	}
}

// appendColumns adds attributes for the unused fields and contexts, and for the fields of the packet's context without a
// role. If another attribute has taken the name, as that of a field before a context, the name has the prefix "context.". If
// numbers is set, an enumeration has a second attribute with its number, whose name ends with "_number".
func (r *RecordPlan) appendColumns(class *ctf.EventClass, used map[*ctf.Field]bool, taken map[string]bool, numbers bool) {
	take := func(key string) string {
		for taken[key] {
			key = "context." + key
		}
		taken[key] = true
		return key
	}
	for _, scope := range [...]metadata.Scope{metadata.EventFields, metadata.EventContext, metadata.EventCommonContext, metadata.PacketContext} {
		columns := &r.columns
		if scope == metadata.PacketContext {
			columns = &r.packetColumns
		}
		root := class.Scope(scope)
		if root == nil || root.Kind != ctf.Struct {
			continue
		}
		described := descriptions(root)
		for _, f := range root.Members {
			if used[f] || f.Name == "" || described[f] || f.HasRole() {
				continue
			}
			key := take(f.Name)
			r.appendColumn(columns, newColumn(key, f, r.hexadecimal))
			if t, ok := f.Type.(*metadata.Integer); ok && t.Enum && numbers && root.Lookup(f.Name+numberSuffix) == nil {
				r.appendColumn(columns, column{take(key + numberSuffix), f, formOfNumber(f, t)})
			}
		}
	}
}

// numberSuffix ends the name of the attribute with the number of an enumeration.
const numberSuffix = "_number"

// appendColumn adds an attribute to the columns if the record has room for its name.
func (r *RecordPlan) appendColumn(columns *[]column, c column) {
	if len(c.key) > MaxNameBytes || len(*columns) >= maxAttributes || r.bytes+len(c.key) > r.most {
		r.beyond++
		return
	}
	*columns = append(*columns, c)
	r.bytes += len(c.key)
}

// Write writes the log record of an event in a packet, without its times, and returns its size. thread is the thread of
// the event if its fields do not name it; nil: it is not known.
func (r *RecordPlan) Write(l plog.LogRecord, e *ctf.Event, packet *ctf.Packet, thread *Thread, known *Texts) (size RecordSize) {
	v := &e.Values
	size = RecordSize{Bytes: r.bytes, most: r.most, LeftOut: r.beyond}
	l.SetEventName(r.name.text)
	s := r.severity
	if r.severityOf != nil {
		if level, ok := r.level.Value(v); ok {
			s = r.severityOf(level)
			if s.text == "" {
				s.text = strconv.FormatInt(level, 10)
			}
		}
	}
	l.SetSeverityNumber(s.number)
	l.SetSeverityText(s.text)
	if r.message.exists() {
		l.Body().SetStr(size.text(validText(v, r.message)))
	} else {
		r.name.set(l.Body(), known.sharer)
	}
	attributes := &known.attributes
	attributes.EnsureCapacity(r.attributes)
	if r.hasThread {
		r.writeThread(attributes, v, known, &size)
	}
	if r.hasPlace {
		r.writePlace(attributes, v, known, &size)
	}
	for i := range r.packetColumns {
		r.packetColumns[i].write(attributes, &packet.Values, known, &size)
	}
	for i := range r.columns {
		r.columns[i].write(attributes, v, known, &size)
	}
	if !r.hasThread {
		thread.write(attributes, known, &size)
	}
	attributes.UnsafeIntoMap(l.Attributes())
	if size.LeftOut > 0 {
		l.SetDroppedAttributesCount(uint32(size.LeftOut))
	}
	size.Bytes += l.Attributes().Len() * valueBytes
	return size
}

// writeThread writes the thread.
func (r *RecordPlan) writeThread(attributes *xpdata.MapBuilder, v *ctf.Values, known *Texts, size *RecordSize) {
	if id, ok := r.thread.Value(v); ok {
		known.setNumber(attributes.AppendEmpty(attributeThreadID), id)
	}
	for _, name := range r.threadName {
		if b := name.Bytes(v); len(b) > 0 {
			known.setText(attributes.AppendEmpty(attributeThreadName), size.name(b), name)
			return
		}
	}
}

// Thread is the thread of an event, as other events show it.
type Thread struct {
	id   knownNumber
	name knownText
}

// NewThread returns a thread. Its name is empty if it is not known.
func NewThread(id int64, name string) Thread {
	return Thread{id: knownNumber{number: id}, name: knownText{text: name}}
}

// ID returns the thread's number.
func (t *Thread) ID() int64 { return t.id.number }

// Name returns the thread's name.
func (t *Thread) Name() string { return t.name.text }

// SetName sets the thread's name.
func (t *Thread) SetName(name string) { t.name = knownText{text: name} }

// write writes a thread that the fields of the event do not name.
func (t *Thread) write(attributes *xpdata.MapBuilder, known *Texts, size *RecordSize) {
	if t == nil {
		return
	}
	t.id.set(attributes.AppendEmpty(attributeThreadID), t.ID(), known.sharer)
	if t.Name() != "" {
		t.name.set(attributes.AppendEmpty(attributeThreadName), known.sharer)
		size.Bytes += len(t.Name())
	}
}

// writePlace writes the place in the code.
func (r *RecordPlan) writePlace(attributes *xpdata.MapBuilder, v *ctf.Values, known *Texts, size *RecordSize) {
	if function := r.function.Bytes(v); len(function) > 0 {
		attributes.AppendEmpty(attributeFunction).SetStr(known.method(size.name(r.class.Bytes(v)), size.name(function), r.function))
	}
	if file := r.file.Bytes(v); len(file) > 0 {
		known.setText(attributes.AppendEmpty(attributeFile), size.name(file), r.file)
	}
	if r.line != nil && v.Present(r.line) {
		writeLine(attributes, v, r.line)
	}
}

// writeLine writes a line number. Some tracers send it as text.
func writeLine(attributes *xpdata.MapBuilder, v *ctf.Values, f *ctf.Field) {
	switch f.Kind {
	case ctf.Int, ctf.Uint:
		attributes.AppendEmpty(attributeLine).SetInt(v.Int(f))
	case ctf.Text:
		if n, err := strconv.ParseInt(string(v.Text(f)), 10, 64); err == nil {
			attributes.AppendEmpty(attributeLine).SetInt(n)
		}
	}
}

// descriptions returns the fields that only contain the length of a member of root, and tags that tracers add to variants
// whose type is not known before. The value of that member contains the same information. Other selectors have a meaning
// of their own, such as the protocol of a packet.
func descriptions(root *ctf.Field) map[*ctf.Field]bool {
	fields := map[*ctf.Field]bool{}
	for _, m := range root.Members {
		source := m.Source()
		if source != nil && (m.Kind != ctf.Variant && m.Kind != ctf.Optional || source.Name == m.Name+tagSuffix) {
			fields[source] = true
		}
	}
	return fields
}

// tagSuffix ends the names of LTTng's tags of variants: those of the application's contexts.
const tagSuffix = "_tag"
