// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Resource attributes, by the semantic conventions and of the receiver's own.
const (
	attributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
	attributeHostName          = "host.name"
	attributeProcessID         = "process.pid"
	attributeSession           = "lttng.session.name"
)

// unknownService is the service.name of what has none, by the conventions: with a
// colon and the name of the program behind it where that is known.
const unknownService = "unknown_service"

// origin is what data comes from: a process, or a trace where events don't say of
// which process they are.
type origin struct {
	config  *Config
	id      callevent.StreamID
	host    string
	session string
	// pid is the process's ID; hasPID says whether it is known.
	pid    int64
	hasPID bool
	// program is the name of the process, as far as it is known when the first data
	// is handed on.
	program string

	resource pcommon.Resource
	made     bool
}

// frozen is the resource, which is the same from the first call on: several resources
// for one process would be several processes to whoever reads them.
func (o *origin) frozen() pcommon.Resource {
	if o.made {
		return o.resource
	}
	o.made = true
	o.resource = pcommon.NewResource()
	attributes := o.resource.Attributes()
	// Validate has tried it.
	_ = attributes.FromRaw(o.config.ResourceAttributes)
	service := o.config.ServiceName
	if service == "" {
		service = unknownService
		if o.program != "" {
			service += ":" + o.program
		}
	}
	putNew(attributes, attributeServiceName, service)
	putNew(attributes, attributeServiceInstanceID, uuidText(o.id))
	putNew(attributes, attributeHostName, o.host)
	putNew(attributes, attributeSession, o.session)
	if _, set := attributes.Get(attributeProcessID); !set && o.hasPID {
		attributes.PutInt(attributeProcessID, o.pid)
	}
	return o.resource
}

// putNew puts a text that is not empty under a key that is not set, as UTF-8: names of
// hosts, sessions and processes may be anything, and one that is none would have
// exporters' peers refuse all that is sent with it.
func putNew(attributes pcommon.Map, key, value string) {
	if _, set := attributes.Get(key); !set && value != "" {
		attributes.PutStr(key, strings.ToValidUTF8(value, "\uFFFD"))
	}
}

// uuidText writes 16 bytes as UUIDs are written.
func uuidText(id [16]byte) string {
	digits := hex.EncodeToString(id[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// processKey is a process of a trace: its ID in its namespace. IDs are used again, so
// several processes can have the same one after the other.
type processKey struct {
	namespace int64
	pid       int64
}

// streamID is the ID of the call stream of a process whose first event happened at the
// time begun: the same whenever the same recording is read.
func streamID(trace, host string, key processKey, begun int64) (id callevent.StreamID) {
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
