// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"crypto/sha256"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
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

// origin is the process that data comes from: one life of a server.
type origin struct {
	resource pcommon.Resource
	// seed tells processes apart, for IDs: the same one has the same, whoever asks.
	seed [sha256.Size]byte
	// begun is when it was seen first.
	begun time.Time
}

// identity is what is known of a server's process.
type identity struct {
	// pid is its process ID; 0: the server doesn't say it.
	pid int64
	// session is the ID of the console's session that said so, which the server counts from its
	// start; 0: not known. It is greater each time that the same server is asked.
	session int64
	// version is the server's; empty: it doesn't say it.
	version  string
	protocol Protocol
	// host is the machine that it runs on; empty: not known.
	host string
	// sessions are how many there are with the server, if it says that.
	sessions    int
	hasSessions bool
}

// isOther reports whether a server that was before is another process now, or has been started
// anew. What is not known of one of them says nothing.
func (before identity) isOther(now identity) bool {
	return before.session != 0 && now.session != 0 && now.session <= before.session || before.protocol != now.protocol || before.pid != 0 && now.pid != 0 && before.pid != now.pid ||
		before.version != "" && now.version != "" && before.version != now.version
}

// instanceID tells a server from others by its address. One that says nothing of the machine
// is said with the name of the collector's, since servers on others have the same.
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
func newOrigin(e *environment, server *ServerConfig, who identity, begun time.Time) *origin {
	o := &origin{resource: pcommon.NewResource(), begun: begun}
	attributes := o.resource.Attributes()
	// Validate has tried it.
	_ = attributes.FromRaw(e.config.ResourceAttributes)
	putNew(attributes, attributeServiceName, server.ServiceName)
	putNew(attributes, attributeServiceName, e.config.ServiceName)
	putNew(attributes, attributeServiceName, unknownService)
	putNew(attributes, attributeServiceInstanceID, instanceID(server.Endpoint, e.host))
	if _, set := attributes.Get(attributeProcessID); !set && who.pid != 0 {
		attributes.PutInt(attributeProcessID, who.pid)
	}
	putNew(attributes, attributeHostName, who.host)
	putNew(attributes, attributeServerVersion, text(who.version))
	putNew(attributes, attributeServerProtocol, string(who.protocol))
	o.seed = sha256.Sum256(fmt.Appendf(nil, "greys %s %d", instanceID(server.Endpoint, e.host), who.pid))
	return o
}

// putNew puts a text that is not empty under a key that is not set.
func putNew(attributes pcommon.Map, key, value string) {
	if _, set := attributes.Get(key); !set && value != "" {
		attributes.PutStr(key, value)
	}
}

const (
	// maxTextBytes is how long a text may be that stands in attributes, and maxLongTextBytes
	// a stack trace: longer ones are cut.
	maxTextBytes     = 1024
	maxLongTextBytes = 64 << 10
)

// text is a text of a server as it may stand in attributes: UTF-8, and not too long.
func text(of string) string { return cut(of, maxTextBytes) }

// longText is a text of many lines, as it may stand in attributes.
func longText(of string) string { return cut(of, maxLongTextBytes) }

func cut(of string, most int) string {
	if len(of) > most {
		at := most
		for at > most-utf8.UTFMax && !utf8.RuneStart(of[at]) {
			at--
		}
		of = strings.Clone(of[:at]) // what is kept must not hold the whole
	}
	return strings.ToValidUTF8(of, "\uFFFD")
}
