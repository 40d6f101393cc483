// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"os"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/process"
)

// Resource attributes, by the semantic conventions.
const (
	attributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
	attributeHostName          = "host.name"
	attributeProcessID         = "process.pid"
	attributeExecutableName    = "process.executable.name"
	attributeCommandArgs       = "process.command_args"
)

// unknownService is the default service.name of the conventions. A colon and the name of the program follow if it is
// known.
const unknownService = "unknown_service"

// languages are the languages of programs with agents of a domain.
var languages = map[lttngagent.Domain]string{
	lttngagent.JUL: "java", lttngagent.Log4j: "java", lttngagent.Log4j2: "java", lttngagent.Python: "python",
}

// resourceOf returns the resource of an agent's data.
func resourceOf(config *Config, domain lttngagent.Domain, pid uint32, p process.Process, peer net.Addr) pcommon.Resource {
	program := p.Name
	if program == "" {
		program = languages[domain]
	}
	resource := newResource(config, unknownService+":"+program, randomUUID(), isLocal(peer))
	attributes := resource.Attributes()
	if _, set := attributes.Get(attributeProcessID); !set && pid != 0 {
		attributes.PutInt(attributeProcessID, int64(pid))
	}
	receiverkit.PutNew(attributes, attributeExecutableName, p.Name)
	if _, set := attributes.Get(attributeCommandArgs); !set && len(p.Arguments) > 0 {
		arguments := attributes.PutEmptySlice(attributeCommandArgs)
		for _, argument := range p.Arguments {
			arguments.AppendEmpty().SetStr(argument)
		}
	}
	return resource
}

// newResource returns a resource with the common attributes. The configuration overrides them.
func newResource(config *Config, service, instance string, onThisHost bool) pcommon.Resource {
	resource := config.Resource()
	attributes := resource.Attributes()
	if config.ServiceName != "" {
		service = config.ServiceName
	}
	receiverkit.PutNew(attributes, attributeServiceName, service)
	receiverkit.PutNew(attributes, attributeServiceInstanceID, instance)
	if host, err := os.Hostname(); err == nil && onThisHost {
		receiverkit.PutNew(attributes, attributeHostName, host)
	}
	return resource
}

// isLocal reports whether a peer is certainly on this machine.
func isLocal(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// randomUUID returns an ID for one registration (version 4 of RFC 9562).
func randomUUID() string {
	var id [16]byte
	// It never fails.
	_, _ = rand.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	digits := hex.EncodeToString(id[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}
