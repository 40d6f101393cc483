// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"crypto/sha256"
	"fmt"
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/text"
)

// Attributes of resources, by the semantic conventions and of the receiver's own.
const (
	attributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
	attributeProcessID         = "process.pid"
	attributeHostName          = "host.name"
	attributeServerVersion     = "greys.server.version"
	attributeServerProtocol    = "greys.server.protocol"

	// unknownService is the service.name of what has none, by the conventions.
	unknownService = "unknown_service:java"
)

// origin is the process of data.
type origin struct {
	resource pcommon.Resource
	// seed is the same for the same process, and makes IDs of its recorded calls.
	seed [sha256.Size]byte
	// begun is when the process was connected first.
	begun time.Time
}

// output forwards the results of a process: traces.go and logs.go have its methods.
type output struct {
	env     *environment
	origin  *origin
	process *process.Process
}

// instanceID is the address of a server. A loopback address gets the name of this machine, since
// servers on other machines have the same address.
func instanceID(endpoint, host string) string {
	name, port, err := net.SplitHostPort(endpoint)
	if err != nil || host == "" {
		return endpoint
	}
	ip := net.ParseIP(name)
	if name == "" || name == "localhost" || ip.IsLoopback() || ip.IsUnspecified() {
		return net.JoinHostPort(host, port)
	}
	return endpoint
}

// newOrigin makes the resource of a process.
func newOrigin(e *environment, server *ServerConfig, who session.Identity, begun time.Time) *origin {
	o := &origin{resource: pcommon.NewResource(), begun: begun}
	attributes := o.resource.Attributes()
	// Validate has tried it.
	_ = attributes.FromRaw(e.config.ResourceAttributes)
	putNew(attributes, attributeServiceName, server.ServiceName)
	putNew(attributes, attributeServiceName, e.config.ServiceName)
	putNew(attributes, attributeServiceName, unknownService)
	putNew(attributes, attributeServiceInstanceID, instanceID(server.Endpoint, e.host))
	if _, set := attributes.Get(attributeProcessID); !set && who.PID != 0 {
		attributes.PutInt(attributeProcessID, who.PID)
	}
	putNew(attributes, attributeHostName, who.Host)
	putNew(attributes, attributeServerVersion, text.Short(who.Version))
	putNew(attributes, attributeServerProtocol, string(who.Protocol))
	o.seed = sha256.Sum256(fmt.Appendf(nil, "greys %s %d", instanceID(server.Endpoint, e.host), who.PID))
	return o
}

// putNew puts a text under a key that is not set, unless the text is empty.
func putNew(attributes pcommon.Map, key, value string) {
	if _, set := attributes.Get(key); !set && value != "" {
		attributes.PutStr(key, value)
	}
}
