// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package records makes log records of one process: parcels of records for the queue, and a record for
// each object of a dump. It owns the open parcel.
package records

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// The event and the attributes of the record of a dumped object.
const (
	EventObject = "rbkit.object"

	attributeFile       = "code.file.path"
	attributeLine       = "code.line.number"
	attributeObjectID   = "rbkit.object.id"
	attributeObjectSize = "rbkit.object.size"
	attributeReferences = "rbkit.object.references"
	attributeMoreRefs   = "rbkit.object.references.more"
	// AttributeDumpID is also an attribute of the record of a dump.
	AttributeDumpID = "rbkit.dump.correlation_id"
)

// The approximate memory of records and their values.
const (
	bytesOfRecord = 256
	bytesOfValue  = 64
)

// Parcel is log records of one process for the queue.
type Parcel struct {
	Logs    plog.Logs
	Records int
	Bytes   int
}

// NewParcel returns a parcel of one record.
func NewParcel(logs plog.Logs, r plog.LogRecord) Parcel {
	return Parcel{Logs: logs, Records: 1, Bytes: bytesOfRecord + bytesOfValues(r.Attributes())}
}

// bytesOfValues returns the approximate memory of attributes.
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

// New returns empty log records of a process.
func New(kit *receiverkit.Kit, of *origin.Origin) (plog.Logs, plog.LogRecordSlice) {
	logs := plog.NewLogs()
	return logs, kit.AppendLogs(logs, of.Resource)
}

const (
	// maxObjectRecords and maxObjectBytes bound a parcel of records of objects.
	maxObjectRecords = 1000
	maxObjectBytes   = 1 << 20
	// maxReferences bounds the references in the record of an object.
	maxReferences = 1000
)

// Settings are the settings of the records of one process.
type Settings struct {
	Kit *receiverkit.Kit
	// Deliver receives parcels of records of objects; nil: objects have no records.
	Deliver func(Parcel)
}

// Objects makes a log record of each object of a dump.
type Objects struct {
	settings *Settings
	origin   *origin.Origin

	logs    plog.Logs
	records plog.LogRecordSlice
	n       int
	bytes   int
}

// NewObjects returns no records of a process.
func NewObjects(settings *Settings, of *origin.Origin) Objects {
	return Objects{settings: settings, origin: of}
}

// AreWanted reports whether objects have records.
func (o *Objects) AreWanted() bool { return o.settings.Deliver != nil }

// SetOrigin delivers all records, and sets the origin of all later records.
func (o *Objects) SetOrigin(of *origin.Origin) {
	o.Deliver()
	o.origin = of
}

// AppendObject adds the record of an object of a dump.
func (o *Objects) AppendObject(e *rbkit.Event, now time.Time) {
	of := &e.Object
	if o.n == 0 {
		o.logs, o.records = New(o.settings.Kit, o.origin)
	}
	r := o.records.AppendEmpty()
	r.SetTimestamp(pcommon.Timestamp(int64(e.Time) * int64(time.Millisecond)))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	r.SetEventName(EventObject)
	r.SetSeverityNumber(plog.SeverityNumberDebug)
	r.SetSeverityText(plog.SeverityNumberDebug.String())
	class := names.ClassName(of.Class)
	r.Body().SetStr(class)
	m := r.Attributes()
	m.PutInt(AttributeDumpID, int64(min(e.Part.Correlation, math.MaxInt64)))
	m.PutInt(attributeObjectID, int64(min(of.ID, math.MaxInt64)))
	m.PutStr(names.AttributeClass, class)
	if of.Sized {
		m.PutInt(attributeObjectSize, int64(min(of.Size, math.MaxInt64)))
	}
	if of.File != nil {
		m.PutStr(attributeFile, names.ValidText(of.File))
	}
	if of.Line > 0 {
		m.PutInt(attributeLine, int64(min(of.Line, names.MaxLine)))
	}
	o.putReferences(m, of.References)
	o.n++
	o.bytes += bytesOfRecord + len(class) + len(of.File) + bytesOfValues(m)
	if o.n >= maxObjectRecords || o.bytes >= maxObjectBytes {
		o.Deliver()
	}
}

func (o *Objects) putReferences(m pcommon.Map, references rbkit.References) {
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

// Deliver delivers all records.
func (o *Objects) Deliver() {
	if o.n == 0 {
		return
	}
	o.settings.Deliver(Parcel{Logs: o.logs, Records: o.n, Bytes: o.bytes})
	o.n, o.bytes = 0, 0
}

// Memory returns the approximate memory of the open records.
func (o *Objects) Memory() int { return o.bytes }
