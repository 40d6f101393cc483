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

	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/records"
)

// Names of events.
const (
	eventConnected = "rbkit.server.connected"
	eventRestarted = "rbkit.server.restarted"
	eventGone      = "rbkit.server.gone"
	eventDump      = "rbkit.dump"
)

// Attributes of log records.
const (
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

// log delivers a log record of an event, if a pipeline accepts it. at is its time; 0: now.
func (o *outputs) log(of *origin.Origin, name, body string, severity plog.SeverityNumber, at pcommon.Timestamp, fill func(pcommon.Map)) {
	if o.logs == nil || o.eventsOff[name] {
		return
	}
	logs, slice := records.New(o.Kit, of)
	r := slice.AppendEmpty()
	observed := pcommon.NewTimestampFromTime(o.Now())
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
	o.logs.Enqueue(records.NewParcel(logs, r))
}

// Connected delivers the log record of a connected server.
func (o *outputs) Connected(of *origin.Origin) {
	o.log(of, eventConnected, "The server is connected", plog.SeverityNumberInfo, 0, noAttributes)
}

// Restarted delivers the log record of a restarted server.
func (o *outputs) Restarted(of *origin.Origin) {
	o.log(of, eventRestarted, "The server was restarted", plog.SeverityNumberWarn, 0, noAttributes)
}

// Disconnected delivers the log record of a server whose connection existed since a time.
func (o *outputs) Disconnected(of *origin.Origin, since time.Time, why error) {
	o.log(of, eventGone, "The server is gone", plog.SeverityNumberWarn, 0, func(m pcommon.Map) {
		m.PutDouble(attributeLifetime, o.Now().Sub(since).Seconds())
		m.PutStr(attributeError, names.ValidString(why.Error()))
	})
}

func noAttributes(pcommon.Map) {}

// recordDump delivers the log record of a dump.
func (o *outputs) recordDump(of *origin.Origin, d *heap.Dump, classes *names.Names) {
	body, severity := summaryOf(d)
	at := pcommon.Timestamp(d.Millis * int64(time.Millisecond))
	o.log(of, eventDump, body, severity, at, func(m pcommon.Map) {
		m.PutInt(records.AttributeDumpID, int64(min(d.Correlation, math.MaxInt64)))
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
