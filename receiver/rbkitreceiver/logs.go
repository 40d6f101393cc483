// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/rbkit"
)

// Names of events.
const (
	eventConnected = "rbkit.server.connected"
	eventRestarted = "rbkit.server.restarted"
	eventGone      = "rbkit.server.gone"
	eventDump      = "rbkit.dump"
	eventObject    = "rbkit.object"
)

// Attributes of log records.
const (
	attributeFile          = "code.file.path"
	attributeLine          = "code.line.number"
	attributeObjectID      = "rbkit.object.id"
	attributeObjectSize    = "rbkit.object.size"
	attributeReferences    = "rbkit.object.references"
	attributeMoreRefs      = "rbkit.object.references.more"
	attributeDumpID        = "rbkit.dump.correlation_id"
	attributeDumpAnnounced = "rbkit.dump.objects.announced"
	attributeDumpReceived  = "rbkit.dump.objects.received"
	attributeDumpComplete  = "rbkit.dump.complete"
	attributeDumpSize      = "rbkit.dump.size"
	attributeDumpRefs      = "rbkit.dump.references"
	attributeDumpNowhere   = "rbkit.dump.references.nowhere"
	attributeDumpDangling  = "rbkit.dump.objects.dangling"
	attributeDumpClasses   = "rbkit.dump.classes"
	attributeError         = "rbkit.error.message"
	attributeLifetime      = "rbkit.server.connected_for"
)

// What records and their values take in memory, about.
const (
	bytesOfRecord = 256
	bytesOfValue  = 64
)

// logParcel is log records of one process on their way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// newLogs makes empty log records of a process.
func (e *environment) newLogs(of *origin) (plog.Logs, plog.LogRecordSlice) {
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	of.resource.CopyTo(resource.Resource())
	scope := resource.ScopeLogs().AppendEmpty()
	e.setScope(scope.Scope())
	resource.SetSchemaUrl(schema.URL)
	scope.SetSchemaUrl(schema.URL)
	return logs, scope.LogRecords()
}

// say hands on a log record, if logs are wanted. at is its time, if it is not that of its
// observation.
func (e *environment) say(of *origin, name, body string, severity plog.SeverityNumber, at pcommon.Timestamp, fill func(pcommon.Map)) {
	if e.logs == nil || e.eventsOff[name] {
		return
	}
	logs, records := e.newLogs(of)
	r := records.AppendEmpty()
	observed := pcommon.NewTimestampFromTime(e.now())
	if at == 0 {
		at = observed
	}
	r.SetTimestamp(at)
	r.SetObservedTimestamp(observed)
	r.SetEventName(name)
	r.SetSeverityNumber(severity)
	r.SetSeverityText(severity.String())
	r.Body().SetStr(body)
	fill(r.Attributes())
	e.logs.Add(logParcel{logs: logs, records: 1, bytes: bytesOfRecord + bytesOfValues(r.Attributes())})
}

// bytesOfValues is what attributes take in memory, about.
func bytesOfValues(m pcommon.Map) int {
	bytes := 0
	for _, v := range m.All() {
		bytes += bytesOfValue
		if v.Type() == pcommon.ValueTypeSlice {
			bytes += 4 * bytesOfValue * v.Slice().Len()
		}
	}
	return bytes
}

func noAttributes(pcommon.Map) {}

func (e *environment) saidConnected(of *origin) {
	e.say(of, eventConnected, "The server is connected", plog.SeverityNumberInfo, 0, noAttributes)
}

func (e *environment) saidRestarted(of *origin) {
	e.say(of, eventRestarted, "The server was restarted", plog.SeverityNumberWarn, 0, noAttributes)
}

func (e *environment) saidGone(of *origin, since time.Time, why error) {
	e.say(of, eventGone, "The server is gone", plog.SeverityNumberWarn, 0, func(m pcommon.Map) {
		m.PutDouble(attributeLifetime, e.now().Sub(since).Seconds())
		m.PutStr(attributeError, text(why.Error()))
	})
}

// saidDump summarises a dump.
func (e *environment) saidDump(p *process, d *dump) {
	body, severity := d.summary()
	at := pcommon.Timestamp(d.millis * int64(time.Millisecond))
	e.say(p.origin, eventDump, body, severity, at, func(m pcommon.Map) {
		m.PutInt(attributeDumpID, int64(min(d.correlation, math.MaxInt64)))
		m.PutInt(attributeDumpReceived, int64(d.received))
		if d.counted {
			m.PutInt(attributeDumpAnnounced, int64(min(d.announced, math.MaxInt64)))
			m.PutBool(attributeDumpComplete, d.complete())
		}
		m.PutInt(attributeDumpSize, d.bytes)
		m.PutInt(attributeDumpRefs, d.references.total)
		if nowhere, objects, known := d.references.nowhere(); known {
			m.PutInt(attributeDumpNowhere, nowhere)
			m.PutInt(attributeDumpDangling, objects)
		}
		putClasses(m.PutEmptySlice(attributeDumpClasses), &d.live, p.classes)
	})
}

// summary says what came of a dump, and how bad that is.
func (d *dump) summary() (string, plog.SeverityNumber) {
	switch {
	case d.complete():
		return fmt.Sprintf("Object space dump: %d objects, %d bytes", d.received, d.bytes), plog.SeverityNumberInfo
	case !d.counted:
		return fmt.Sprintf("Object space dump: %d objects, %d bytes; the server did not say how many there are", d.received, d.bytes), plog.SeverityNumberWarn
	case d.received > d.announced:
		return fmt.Sprintf("Object space dump with more objects than announced: %d, not %d, %d bytes", d.received, d.announced, d.bytes), plog.SeverityNumberWarn
	default:
		return fmt.Sprintf("Object space dump, incomplete: %d of %d objects, %d bytes", d.received, max(d.announced, d.expected), d.bytes), plog.SeverityNumberWarn
	}
}

// putClasses puts classes with their objects and bytes, those with the most bytes first.
func putClasses(into pcommon.Slice, live *liveCounts, classes *names) {
	var all []int32
	for class, n := range live.objects {
		if n > 0 {
			all = append(all, int32(class))
		}
	}
	slices.SortFunc(all, func(a, b int32) int {
		return cmp.Or(cmp.Compare(live.bytes[b], live.bytes[a]), cmp.Compare(classes.texts[a], classes.texts[b]))
	})
	into.EnsureCapacity(len(all))
	for _, class := range all {
		m := into.AppendEmpty().SetEmptyMap()
		m.PutStr("class", classes.texts[class])
		m.PutInt("objects", live.objects[class])
		m.PutInt("size", live.bytes[class])
	}
}

const (
	// maxObjectRecords and maxObjectBytes are how many records of objects are handed on at
	// once.
	maxObjectRecords = 1000
	maxObjectBytes   = mib
	// maxReferences is how many references a record of an object has.
	maxReferences = 1000
)

// objectRecords makes a log record of each object of a dump.
type objectRecords struct {
	env    *environment
	origin *origin

	logs    plog.Logs
	records plog.LogRecordSlice
	n       int
	bytes   int
}

// add is told of an object of a dump.
func (o *objectRecords) add(e *rbkit.Event, now time.Time) {
	of := &e.Object
	if o.n == 0 {
		o.logs, o.records = o.env.newLogs(o.origin)
	}
	r := o.records.AppendEmpty()
	r.SetTimestamp(pcommon.Timestamp(int64(e.Time) * int64(time.Millisecond)))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	r.SetEventName(eventObject)
	r.SetSeverityNumber(plog.SeverityNumberDebug)
	r.SetSeverityText(plog.SeverityNumberDebug.String())
	class := className(of.Class)
	r.Body().SetStr(class)
	m := r.Attributes()
	m.PutInt(attributeDumpID, int64(min(e.Part.Correlation, math.MaxInt64)))
	m.PutInt(attributeObjectID, int64(min(of.ID, math.MaxInt64)))
	m.PutStr(attributeClass, class)
	if of.Sized {
		m.PutInt(attributeObjectSize, int64(min(of.Size, math.MaxInt64)))
	}
	if of.File != nil {
		m.PutStr(attributeFile, validText(of.File))
	}
	if of.Line > 0 {
		m.PutInt(attributeLine, int64(min(of.Line, maxLine)))
	}
	o.putReferences(m, of.References)
	o.n++
	o.bytes += bytesOfRecord + len(class) + len(of.File) + bytesOfValues(m)
	if o.n >= maxObjectRecords || o.bytes >= maxObjectBytes {
		o.flush()
	}
}

func (o *objectRecords) putReferences(m pcommon.Map, references rbkit.References) {
	if references.Len() == 0 {
		return
	}
	into := m.PutEmptySlice(attributeReferences)
	into.EnsureCapacity(min(references.Len(), maxReferences))
	for id := range references.All() {
		if into.Len() >= maxReferences {
			m.PutInt(attributeMoreRefs, int64(references.Len()-maxReferences))
			return
		}
		into.AppendEmpty().SetInt(int64(min(id, math.MaxInt64)))
	}
}

// flush hands on what there is.
func (o *objectRecords) flush() {
	if o.n == 0 {
		return
	}
	o.env.logs.Add(logParcel{logs: o.logs, records: o.n, bytes: o.bytes})
	o.n, o.bytes = 0, 0
}
