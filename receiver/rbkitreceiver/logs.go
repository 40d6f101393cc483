// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
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

// The memory of records and their values, about.
const (
	bytesOfRecord = 256
	bytesOfValue  = 64
)

// logParcel is log records of one process for the queue.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// bytesOfValues returns the memory of attributes, about.
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

// newLogs makes empty log records of a process.
func newLogs(kit *receiverkit.Kit, of *origin.Origin) (plog.Logs, plog.LogRecordSlice) {
	logs := plog.NewLogs()
	return logs, kit.AppendLogs(logs, of.Resource)
}
