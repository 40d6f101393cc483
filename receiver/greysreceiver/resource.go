// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"crypto/sha256"
	"fmt"
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// Resource attributes of the semantic conventions and of the receiver.
const (
	attributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
	attributeProcessID         = "process.pid"
	attributeHostName          = "host.name"
	attributeServerVersion     = "greys.server.version"
	attributeServerProtocol    = "greys.server.protocol"

	// unknownService is the conventions' service.name for a service without a name.
	unknownService = "unknown_service:java"
)

// origin describes the process of data.
type origin struct {
	resource pcommon.Resource
	// seed is the same for the same process. IDs of recorded calls are derived from it.
	seed [sha256.Size]byte
	// begun is the time of the first connection to the process.
	begun time.Time
}

// instanceID returns the address of a server. A loopback host is replaced by the name of this machine, because servers
// on other machines have the same loopback address.
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

// newOrigin returns the origin of a process. host is the name of this machine.
func newOrigin(config *Config, server *ServerConfig, host string, who session.Identity, begun time.Time) *origin {
	instance := instanceID(server.Endpoint, host)
	o := &origin{resource: config.Resource(), begun: begun, seed: sha256.Sum256(fmt.Appendf(nil, "greys %s %d", instance, who.PID))}
	attributes := o.resource.Attributes()
	receiverkit.PutNew(attributes, attributeServiceName, server.ServiceName)
	receiverkit.PutNew(attributes, attributeServiceName, config.ServiceName)
	receiverkit.PutNew(attributes, attributeServiceName, unknownService)
	receiverkit.PutNew(attributes, attributeServiceInstanceID, instance)
	if _, set := attributes.Get(attributeProcessID); !set && who.PID != 0 {
		attributes.PutInt(attributeProcessID, who.PID)
	}
	receiverkit.PutNew(attributes, attributeHostName, who.Host)
	receiverkit.PutNew(attributes, attributeServerVersion, text.Short(who.Version))
	receiverkit.PutNew(attributes, attributeServerProtocol, who.Protocol)
	return o
}
