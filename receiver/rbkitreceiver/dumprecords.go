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

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// recordDump delivers the log record of a dump.
func (o *outputs) recordDump(of *origin.Origin, d *heap.Dump, classes *names.Names) {
	body, severity := summaryOf(d)
	at := pcommon.Timestamp(d.Millis * int64(time.Millisecond))
	o.log(of, eventDump, body, severity, at, func(m pcommon.Map) {
		m.PutInt(attributeDumpID, int64(min(d.Correlation, math.MaxInt64)))
		m.PutInt(attributeDumpReceived, int64(d.Received))
		if d.Counted {
			m.PutInt(attributeDumpAnnounced, int64(min(d.Announced, math.MaxInt64)))
			m.PutBool(attributeDumpComplete, d.Complete())
		}
		m.PutInt(attributeDumpSize, d.Bytes)
		m.PutInt(attributeDumpRefs, d.References.Total)
		if nowhere, objects, known := d.References.Nowhere(); known {
			m.PutInt(attributeDumpNowhere, nowhere)
			m.PutInt(attributeDumpDangling, objects)
		}
		putClasses(m.PutEmptySlice(attributeDumpClasses), &d.Live, classes)
	})
}

// summaryOf returns the body and the severity of a dump's record.
func summaryOf(d *heap.Dump) (string, plog.SeverityNumber) {
	switch {
	case d.Complete():
		return fmt.Sprintf("Object space dump: %d objects, %d bytes", d.Received, d.Bytes), plog.SeverityNumberInfo
	case !d.Counted:
		return fmt.Sprintf("Object space dump: %d objects, %d bytes; the server did not say how many there are", d.Received, d.Bytes), plog.SeverityNumberWarn
	case d.Received > d.Announced:
		return fmt.Sprintf("Object space dump with more objects than announced: %d, not %d, %d bytes", d.Received, d.Announced, d.Bytes), plog.SeverityNumberWarn
	default:
		return fmt.Sprintf("Object space dump, incomplete: %d of %d objects, %d bytes", d.Received, max(d.Announced, d.Expected), d.Bytes), plog.SeverityNumberWarn
	}
}

// putClasses puts classes with their objects and bytes, those with the most bytes first.
func putClasses(into pcommon.Slice, live *heap.LiveCounts, classes *names.Names) {
	var all []int32
	for class, n := range live.Objects {
		if n > 0 {
			all = append(all, int32(class))
		}
	}
	slices.SortFunc(all, func(a, b int32) int {
		return cmp.Or(cmp.Compare(live.Bytes[b], live.Bytes[a]), cmp.Compare(classes.Texts[a], classes.Texts[b]))
	})
	into.EnsureCapacity(len(all))
	for _, class := range all {
		m := into.AppendEmpty().SetEmptyMap()
		m.PutStr("class", classes.Texts[class])
		m.PutInt("objects", live.Objects[class])
		m.PutInt("size", live.Bytes[class])
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
	out    *outputs
	origin *origin.Origin

	logs    plog.Logs
	records plog.LogRecordSlice
	n       int
	bytes   int
}

// append adds the record of an object of a dump.
func (o *objectRecords) append(e *rbkit.Event, now time.Time) {
	of := &e.Object
	if o.n == 0 {
		o.logs, o.records = newLogs(o.out.Kit, o.origin)
	}
	r := o.records.AppendEmpty()
	r.SetTimestamp(pcommon.Timestamp(int64(e.Time) * int64(time.Millisecond)))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	r.SetEventName(eventObject)
	r.SetSeverityNumber(plog.SeverityNumberDebug)
	r.SetSeverityText(plog.SeverityNumberDebug.String())
	class := names.ClassName(of.Class)
	r.Body().SetStr(class)
	m := r.Attributes()
	m.PutInt(attributeDumpID, int64(min(e.Part.Correlation, math.MaxInt64)))
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
		o.deliver()
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

// deliver delivers all records.
func (o *objectRecords) deliver() {
	if o.n == 0 {
		return
	}
	o.out.logs.Add(logParcel{logs: o.logs, records: o.n, bytes: o.bytes})
	o.n, o.bytes = 0, 0
}
