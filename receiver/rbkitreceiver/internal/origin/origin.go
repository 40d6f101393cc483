// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package origin knows the processes behind Rbkit servers: their identity, and the resource of
// their data. It knows no connection.
package origin

import (
	"crypto/sha256"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
)

// Attributes of resources, by the semantic conventions and of the receiver itself.
const (
	AttributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
	attributeProcessID         = "process.pid"
	attributeWorkingDirectory  = "process.working_directory"
	attributeRuntimeName       = "process.runtime.name"
	attributeHostName          = "host.name"
	attributeProcessName       = "rbkit.process.name"
	attributeServerVersion     = "rbkit.server.version"
	attributeProtocolVersion   = "rbkit.protocol.version"

	runtimeRuby = "ruby"
	// unknownService is the default service.name of the conventions.
	unknownService = "unknown_service:" + runtimeRuby
)

// Origin is the source of data: one life of a server.
type Origin struct {
	Resource pcommon.Resource
	// Seed identifies the life of the server in IDs.
	Seed [sha256.Size]byte
	// Started is the start time of the process, if it is on this machine, and otherwise Begun.
	Started time.Time
	// Begun is when the receiver first saw the process.
	Begun time.Time
}

// instanceID returns the address of a server. A loopback address gets the name of this
// machine, because servers on other machines have the same address.
func instanceID(publish, host string) string {
	name, port, err := net.SplitHostPort(publish)
	if err != nil || host == "" {
		return publish
	}
	ip := net.ParseIP(name)
	if name == "" || name == "localhost" || ip.IsLoopback() || ip.IsUnspecified() {
		return net.JoinHostPort(host, port)
	}
	return publish
}

// Settings are the settings of the origins of one server.
type Settings struct {
	// Resource returns a resource with the attributes of the configuration.
	Resource func() pcommon.Resource
	// ServiceName is the configured service.name; empty: the name of the process.
	ServiceName string
	// Publish is the address of the server. Host is the name of this machine; empty: it has none.
	Publish, Host string
}

// New returns the origin of a process. begun is the time at which the receiver first saw
// it, and first the same time in Unix milliseconds, which no other life of the server has.
func New(s *Settings, who Identity, begun time.Time, first int64) *Origin {
	o := &Origin{Resource: s.Resource(), Started: begun, Begun: begun}
	attributes := o.Resource.Attributes()
	name, hello := s.ServiceName, who.State
	pid := uint64(0)
	if hello != nil {
		pid = hello.PID
		if name == "" {
			name = programName(names.ValidString(hello.ProcessName))
		}
	}
	if name == "" {
		name = unknownService
	}
	receiverkit.PutNew(attributes, AttributeServiceName, name)
	receiverkit.PutNew(attributes, attributeServiceInstanceID, instanceID(s.Publish, s.Host))
	receiverkit.PutNew(attributes, attributeRuntimeName, runtimeRuby)
	if hello != nil {
		receiverkit.PutNew(attributes, attributeWorkingDirectory, names.ValidString(hello.WorkingDirectory))
		receiverkit.PutNew(attributes, attributeProcessName, names.ValidString(hello.ProcessName))
		receiverkit.PutNew(attributes, attributeServerVersion, names.ValidString(hello.ServerVersion))
		receiverkit.PutNew(attributes, attributeProtocolVersion, names.ValidString(hello.ProtocolVersion))
		if _, set := attributes.Get(attributeProcessID); !set && pid > 0 && pid <= maxPID {
			attributes.PutInt(attributeProcessID, int64(pid))
		}
	}
	if who.Local != nil {
		receiverkit.PutNew(attributes, attributeHostName, who.Local.Host)
		o.Started = who.Local.Started
	}
	o.Seed = sha256.Sum256(fmt.Appendf(nil, "%s %d %d", s.Publish, pid, first))
	return o
}

// programName returns the base name of a program, which Ruby calls $0. That is the path of the
// program, or a title that the program set, whose first word is the program. The name is empty if
// there is no program, as for ruby -e.
func programName(zero string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(zero), " ")
	name := path.Base(strings.TrimRight(word, ":"))
	if strings.HasPrefix(name, "-") || name == "." || name == ".." || name == "/" {
		return ""
	}
	return name
}

// ProfileID returns a hash of the life of the server and the number of the profile.
func (o *Origin) ProfileID(kind string, number uint64) (id pprofile.ProfileID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %s %d", o.Seed, kind, number))
	copy(id[:], sum[:])
	return id
}
