// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// up is the gauge of a server; -1: there is none.
func (b *bed) up(server ServerConfig) int64 {
	if value, has := telemetrytest.Gauge(b.T, b.Telemetry, "otelcol_receiver_rbkit_server_up")["{server="+server.Publish+"}"]; has {
		return value
	}
	return -1
}

func TestTheHealthOfServersIsReported(t *testing.T) {
	away, there := play(t, rbkitserver.Options{}), play(t, rbkitserver.Options{})
	away.stop()
	server := away.addresses
	host := telemetrytest.NewStatuses()
	b := unstartedBed(t, following(away, there))
	b.Host = host
	b.Start()
	failure := "StatusRecoverableError: 1 of 2 failed: " + server.Publish + ": "
	b.Await("a server that is away", func() bool { return len(host.All()) > 0 })
	assert.Contains(t, host.Last(), failure)
	b.Await("the other one", func() bool { return b.up(there.addresses) == 1 })
	assert.Zero(t, b.up(server))
	tries := func() int64 { return b.Points()["connection_failures{socket=publish}"] }
	failures := tries()
	b.Await("more tries", func() bool { return tries() > failures+5 })
	assert.Len(t, host.All(), 1, "nothing has changed")

	away.start(server.Publish, server.Request)
	b.Await("the server that was away", func() bool { return host.Last() == "StatusOK" })
	assert.EqualValues(t, 1, b.up(server))
	away.stop()
	b.Await("its loss", func() bool { return b.up(server) == 0 })
	b.Await("that in the status", func() bool { return host.Last() != "StatusOK" })
	assert.Contains(t, host.Last(), failure)
	said := len(host.All())
	b.Shutdown()
	assert.Len(t, host.All(), said, "a shutdown is no failure")
	assert.EqualValues(t, -1, b.up(server), "no point is left")
}

// A server that publishes may have another one at the address of request, or none.
func TestAServerWithoutAnIdentityIsNotUp(t *testing.T) {
	p := play(t, rbkitserver.Options{})
	host := telemetrytest.NewStatuses()
	b := unstartedBed(t, func(_ *bed, c *Config) {
		server := p.config()
		server.Request = "localhost:1"
		c.Servers, c.Timeout = []ServerConfig{server}, 100*time.Millisecond
	})
	b.Host = host
	b.Start()
	b.Await("it", func() bool { return len(host.All()) > 0 })
	assert.Equal(t, "StatusRecoverableError: 1 of 1 failed: "+p.addresses.Publish+": the server publishes messages, but doesn't answer at the address of request", host.Last())
	assert.Zero(t, b.up(p.addresses))
}
