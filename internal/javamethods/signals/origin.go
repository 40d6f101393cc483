// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"crypto/sha256"
	"fmt"
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// Resource attributes of the semantic conventions.
const (
	attributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
	attributeProcessID         = "process.pid"
	attributeHostName          = "host.name"

	// unknownService is the conventions' service.name for a service without a name.
	unknownService = "unknown_service:java"
)

// Origin is the process that data is from.
type Origin struct {
	Resource pcommon.Resource
	// Seed is the same for the same process. IDs of recorded calls are derived from it.
	Seed [sha256.Size]byte
	// Begun is the time of the first connection to the process.
	Begun time.Time
}

// Server is the server that a process is known by.
type Server struct {
	// Tracer is the namespace of attributes. Endpoint is the server's address, host:port.
	Tracer, Endpoint string
	// ServiceName is the configured service.name, or empty.
	ServiceName string
	// Host is the name of this machine.
	Host string
}

// instanceID returns the address of the server. A loopback host is replaced by the name of this machine, because
// servers on other machines have the same loopback address.
func (s *Server) instanceID() string {
	name, port, err := net.SplitHostPort(s.Endpoint)
	if err != nil || s.Host == "" {
		return s.Endpoint
	}
	ip := net.ParseIP(name)
	if name == "" || name == "localhost" || ip.IsLoopback() || ip.IsUnspecified() {
		return net.JoinHostPort(s.Host, port)
	}
	return s.Endpoint
}

// Origin returns the origin of a process of the server. The configured attributes of the resource stay.
func (s *Server) Origin(resource pcommon.Resource, who session.Identity, begun time.Time) *Origin {
	instance := s.instanceID()
	_, names := newNames(s.Tracer)
	o := &Origin{Resource: resource, Begun: begun, Seed: sha256.Sum256(fmt.Appendf(nil, "%s %s %d", s.Tracer, instance, who.PID))}
	attributes := resource.Attributes()
	receiverkit.PutNew(attributes, attributeServiceName, s.ServiceName)
	receiverkit.PutNew(attributes, attributeServiceName, unknownService)
	receiverkit.PutNew(attributes, attributeServiceInstanceID, instance)
	if _, set := attributes.Get(attributeProcessID); !set && who.PID != 0 {
		attributes.PutInt(attributeProcessID, who.PID)
	}
	receiverkit.PutNew(attributes, attributeHostName, who.Host)
	receiverkit.PutNew(attributes, names.version, text.Short(who.Version))
	receiverkit.PutNew(attributes, names.protocol, who.Protocol)
	return o
}

// ServiceName returns the service.name of the process, or an empty text.
func (o *Origin) ServiceName() string {
	return agentcontrol.TextOf(o.Resource.Attributes(), attributeServiceName)
}
