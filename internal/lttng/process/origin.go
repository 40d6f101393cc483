// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Resource attributes of the semantic conventions, and LTTng's own.
const (
	AttributeServiceName       = "service.name"
	AttributeServiceInstanceID = "service.instance.id"
	AttributeHostName          = "host.name"
	AttributeProcessID         = "process.pid"
	AttributeSession           = "lttng.session.name"
	AttributeExecutable        = "process.executable.name"
)

// unknownService is the service.name of a process without one, in the semantic conventions. A colon
// and the name of the program follow if it is known.
const unknownService = "unknown_service"

// Origin is the source of data: a process, or a trace with events without a process.
type Origin struct {
	Settings *Settings
	ID       callevent.StreamID
	Host     string
	Session  string
	// PID is the process's ID, if HasPID.
	PID    int64
	HasPID bool
	// program is the name of the process, as far as it is known when the first data is delivered.
	program string
	// hasExecutable is set if the resource has the name of the process in an attribute of its own.
	hasExecutable bool

	resource pcommon.Resource
	made     bool

	// logs are the records in the current batch, or nil. records is the number of those without a logger in the last batch
	// that has any record.
	logs    *originLogs
	records int
}

// Resource returns the resource. It never changes after the first call, because two resources would
// appear as two processes.
func (o *Origin) Resource() pcommon.Resource {
	if o.made {
		return o.resource
	}
	o.made = true
	o.resource = pcommon.NewResource()
	attributes := o.resource.Attributes()
	// Validate has checked them.
	_ = attributes.FromRaw(o.Settings.ResourceAttributes)
	service := o.Settings.ServiceName
	if service == "" {
		service = unknownService
		if o.program != "" {
			service += ":" + o.program
		}
	}
	putIfAbsent(attributes, AttributeServiceName, service)
	putIfAbsent(attributes, AttributeServiceInstanceID, UUIDText(o.ID))
	putIfAbsent(attributes, AttributeHostName, o.Host)
	putIfAbsent(attributes, AttributeSession, o.Session)
	if o.hasExecutable {
		putIfAbsent(attributes, AttributeExecutable, o.program)
	}
	if _, set := attributes.Get(AttributeProcessID); !set && o.HasPID {
		attributes.PutInt(AttributeProcessID, o.PID)
	}
	return o.resource
}

// putIfAbsent adds a text under a key that is not set, unless the text is empty. Names of hosts, sessions and
// processes may be invalid UTF-8, and backends refuse all data with such a text.
func putIfAbsent(attributes pcommon.Map, key, value string) {
	if _, set := attributes.Get(key); !set && value != "" {
		attributes.PutStr(key, strings.ToValidUTF8(value, "\uFFFD"))
	}
}

// UUIDText returns the text of a UUID.
func UUIDText(id [16]byte) string {
	digits := hex.EncodeToString(id[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// Key is a process of a trace: its ID in its namespace. Systems reuse IDs, so consecutive processes can have the same
// key.
type Key struct {
	namespace int64
	pid       int64
}

// machineKey is the key of the kernel itself: of events in a kernel trace whose process is not known, and of calls that
// belong to no process.
var machineKey = Key{pid: -1}

// StreamID returns the ID of a process's call stream. begun is the time of its first event. The ID is the same for
// each reading of a recording.
func StreamID(trace, host string, key Key, begun int64) (id callevent.StreamID) {
	h := sha256.New()
	var n [8]byte
	for _, s := range [...]string{trace, host} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, i := range [...]uint64{uint64(key.namespace), uint64(key.pid), uint64(begun)} {
		binary.LittleEndian.PutUint64(n[:], i)
		h.Write(n[:])
	}
	copy(id[:], h.Sum(nil))
	return id
}
