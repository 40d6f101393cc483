// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/testbed"
	"github.com/callbraid/callbraid/test/testbed/flood"
)

// What honest peers get while 10,000 idle connections are opened again as fast as they are
// closed.

const (
	floodConnections = 10_000
	startingAgents   = 20
)

func TestMain(m *testing.M) {
	flood.RunIfChild()
	os.Exit(m.Run())
}

// attack floods an address until the end of the test, and waits until connections are
// closed.
func attack(t testing.TB, address string, o flood.Options) {
	t.Helper()
	o.Address, o.Connections = address, floodConnections
	attack, err := flood.Spawn(o)
	require.NoError(t, err)
	begin := time.Now()
	t.Cleanup(func() {
		last, err := attack.Stop()
		require.NoError(t, err)
		t.Logf("%.0f connections/s; %+v", float64(last.Opened)/time.Since(begin).Seconds(), last)
	})
	counts, err := attack.Await(func(c flood.Counts) bool { return c.Closed > floodConnections })
	require.NoError(t, err, "%+v", counts)
}

func TestAgentsAreTracedDuringAFloodOfIdleConnections(t *testing.T) {
	for name, o := range map[string]flood.Options{
		"from one address":   {},
		"from 250 addresses": {From: flood.Loopback(250)},
		"that begin a hello": {Send: []byte{0}},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := testbed.Address(t)
			c := testbed.Start(t, fmt.Sprintf(`
receivers:
  bytefrog: {endpoint: %q}
processors:
  stack_pairing:
exporters:
  nop:
service:
  pipelines:
    traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [nop]}
`, endpoint))
			attack(t, endpoint, o)
			for i := range startingAgents {
				started := time.Now()
				agent{endpoint: endpoint, capture: "shop"}.complete(t)
				t.Logf("agent %d: %v", i, time.Since(started).Round(time.Millisecond))
			}
			t.Logf("evicted %.0f, refused %.0f", c.Metric(t, "otelcol_receiver_bytefrog_connections_evicted"), c.Metric(t, "otelcol_receiver_bytefrog_refused"))
		})
	}
}
