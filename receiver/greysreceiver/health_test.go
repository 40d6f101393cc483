// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// up returns the gauge of a server; -1 means that there is none.
func (b *bed) up(p *played) int64 {
	if value, has := telemetrytest.Gauge(b.T, b.Telemetry, "otelcol_receiver_greys_server_up")["{server="+p.endpoint+"}"]; has {
		return value
	}
	return -1
}

func TestTheHealthOfServersIsReported(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		away := &played{endpoint: testkit.Address(t)}
		there := play(t, greysserver.Options{Protocol: greysserver.Protocol(protocol)})
		host := telemetrytest.NewStatuses()
		b := following(t, func(c *Config) {
			c.Protocol = protocol
			c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
		}, away, there)
		b.Host = host
		b.start()
		b.Await("the failure of the server that is away", func() bool { return len(host.All()) > 0 })
		assert.Contains(t, host.All()[0], "StatusRecoverableError: 1 of 2 failed: "+away.endpoint+": ")
		b.Await("the other server", func() bool { return b.up(there) == 1 })
		assert.Zero(t, b.up(away))
		failures := b.point("connection_failures")
		b.Await("more tries", func() bool { return b.point("connection_failures") > failures+5 })
		assert.Len(t, host.All(), 1, "nothing has changed")

		server, err := greysserver.New(greysserver.Options{Protocol: greysserver.Protocol(protocol)})
		assert.NoError(t, err)
		listener, err := net.Listen("tcp", away.endpoint)
		assert.NoError(t, err)
		ctx, end := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx, listener) }()
		b.Await("the server that was away", func() bool { return host.Last() == "StatusOK" })
		assert.EqualValues(t, 1, b.up(away))

		end()
		assert.NoError(t, <-served)
		b.Await("its loss", func() bool { return b.up(away) == 0 })
		assert.Contains(t, host.Last(), "StatusRecoverableError: 1 of 2 failed: "+away.endpoint+": ")
		statuses := len(host.All())
		b.Shutdown()
		assert.Len(t, host.All(), statuses, "a shutdown is no failure")
		assert.EqualValues(t, -1, b.up(there), "the gauge is removed")
	})
}
