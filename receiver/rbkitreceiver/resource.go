// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"crypto/sha256"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
)

// Attributes of resources, by the semantic conventions and of the receiver's own.
const (
	attributeServiceName       = "service.name"
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

// origin is the source of data: one life of a server.
type origin struct {
	resource pcommon.Resource
	// seed tells the lives of servers apart, for IDs.
	seed [sha256.Size]byte
	// started is when the process was started, if it is on this machine, and otherwise when
	// it was seen first.
	started time.Time
	// begun is when it was seen first.
	begun time.Time
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

// newOrigin returns the origin of a process. host is the name of this machine; empty: it
// has none. hello is the reply of the server; nil: it was not asked, or didn't answer.
// first is the time at which the receiver first saw it, in Unix milliseconds. It tells
// lives of one server apart.
func newOrigin(config *Config, server *ServerConfig, host string, hello *rbkit.HandshakeReply, local *localProcess, begun time.Time, first int64) *origin {
	o := &origin{resource: config.Resource(), started: begun, begun: begun}
	attributes := o.resource.Attributes()
	name := server.ServiceName
	if name == "" {
		name = config.ServiceName
	}
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
	receiverkit.PutNew(attributes, attributeServiceName, name)
	receiverkit.PutNew(attributes, attributeServiceInstanceID, instanceID(server.Publish, host))
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
	if local != nil {
		receiverkit.PutNew(attributes, attributeHostName, local.host)
		o.started = local.started
	}
	o.seed = sha256.Sum256(fmt.Appendf(nil, "%s %d %d", server.Publish, pid, first))
	return o
}

// programName is the base name of a program, which Ruby calls $0: the path with which it was
// started, or a title that the program gave itself, of which the first word is its program and the
// rest may change. It is empty where there is no program, as for ruby -e.
func programName(zero string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(zero), " ")
	name := path.Base(strings.TrimRight(word, ":"))
	if strings.HasPrefix(name, "-") || name == "." || name == ".." || name == "/" {
		return ""
	}
	return name
}
