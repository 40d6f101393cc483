// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/flood"
)

// Honest peers while thousands of idle connections are opened again as fast as they are closed: more than a listener accepts.

const (
	// A receiver accepts 4096 connections, and other listeners about 1000.
	floodConnections, receiverFloodConnections = 3000, 6000
	startingAgents                             = 20
)

func TestMain(m *testing.M) {
	flood.RunIfChild()
	os.Exit(m.Run())
}

// attack floods an address until the end of the test, and waits until connections are
// closed. By default it has floodConnections.
func attack(t testing.TB, address string, o flood.Options) {
	t.Helper()
	o.Address, o.Connections = address, cmp.Or(o.Connections, floodConnections)
	attack, err := flood.Spawn(o)
	require.NoError(t, err)
	begin := time.Now()
	t.Cleanup(func() {
		last, err := attack.Stop()
		require.NoError(t, err)
		t.Logf("%.0f connections/s; %+v", float64(last.Opened)/time.Since(begin).Seconds(), last)
	})
	counts, err := attack.Await(func(c flood.Counts) bool { return c.Closed > uint64(o.Connections) })
	require.NoError(t, err, "%+v", counts)
}

// attacked is a collector of which each listener is attacked in turn.
type attacked struct {
	*kit.Collector
	bytefrog, jul, pages, control string
}

func startAttacked(t testing.TB) *attacked {
	a := &attacked{bytefrog: testkit.Address(t), jul: testkit.Address(t), pages: testkit.Address(t), control: testkit.Address(t)}
	a.Collector = kit.Start(t, fmt.Sprintf(`
extensions:
  agent_control: {endpoint: %q}
receivers:
  bytefrog: {endpoint: %q}
  lttng_jul: {endpoint: %q}
processors:
  stack_pairing:
exporters:
  flame_graph: {endpoint: %q}
  nop:
service:
  extensions: [health_check, pprof, agent_control]
  pipelines:
    traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [flame_graph]}
    logs: {receivers: [lttng_jul], exporters: [nop]}
`, a.control, a.bytefrog, a.jul, a.pages))
	return a
}

// startAgents starts agents at the same time, all of which have to be traced to their end.
func startAgents(t testing.TB, endpoint string) {
	t.Helper()
	begin, outcomes := time.Now(), make(chan bytefrogagent.Result, startingAgents)
	for range startingAgents {
		one := agent{endpoint: endpoint, capture: "shop"}.agent(t)
		go func() { outcomes <- one.Run(t.Context()) }()
	}
	for range startingAgents {
		r := <-outcomes
		assert.Equal(t, bytefrogagent.Completed, r.Outcome, "%s (%v)", r.Reason, r.Err)
	}
	t.Logf("%d agents took %v", startingAgents, time.Since(begin).Round(time.Millisecond))
}

// readers is how many pages are asked for at the same time: as many as a guard serves.
const readers = 4

// look gets a page as often as there are agents, each time on a connection of its own.
func look(t testing.TB, address string) {
	t.Helper()
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	begin := time.Now()
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for range startingAgents / readers {
				assert.NoError(t, get(client, address))
			}
		})
	}
	reading.Wait()
	t.Logf("%d pages took %v", startingAgents, time.Since(begin).Round(time.Millisecond))
}

func get(client *http.Client, address string) error {
	response, err := client.Get("http://" + address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("expected status 200, got %s", response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func TestAFloodOfIdleConnectionsDoesNotBlockAgents(t *testing.T) {
	c := startAttacked(t)
	for name, o := range map[string]flood.Options{
		"from one address":   {Connections: receiverFloodConnections},
		"from 250 addresses": {Connections: receiverFloodConnections, From: flood.Loopback(250)},
		"that begin a hello": {Connections: receiverFloodConnections, Send: []byte{0}},
	} {
		t.Run("of bytefrog "+name, func(t *testing.T) {
			if testing.Short() && len(o.Send) > 0 {
				t.Skip("takes seconds")
			}
			attack(t, c.bytefrog, o)
			startAgents(t, c.bytefrog)
			assert.Zero(t, c.Metric(t, "otelcol_receiver_bytefrog_refused"))
			assert.NotZero(t, c.Metric(t, "otelcol_receiver_bytefrog_connections_evicted"))
		})
	}
	t.Run("of lttng_jul", func(t *testing.T) {
		attack(t, c.jul, flood.Options{Connections: receiverFloodConnections})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		for i := range startingAgents {
			one := logagent.New(logagent.Options{Address: c.jul, Domain: lttngagent.JUL, PID: uint32(i + 1), Loggers: []string{"a"}})
			running.Go(func() { _ = one.Run(ctx) })
		}
		c.AwaitMetric(t, startingAgents, agentsNow)
		assert.NotZero(t, c.Metric(t, "otelcol_receiver_lttng_jul_connections_evicted"))
	})
	t.Run("of flame_graph", func(t *testing.T) {
		attack(t, c.pages, flood.Options{})
		look(t, c.pages)
		assert.NotZero(t, c.Metric(t, "otelcol_exporter_flame_graph_connections_closed"))
	})
	t.Run("of agent_control", func(t *testing.T) {
		attack(t, c.control, flood.Options{})
		look(t, c.control)
		assert.NotZero(t, c.Metric(t, "otelcol_extension_agent_control_connections_closed"))
	})
	t.Run("of the guard", func(t *testing.T) {
		listen, metrics := testkit.Address(t), testkit.Address(t)
		guard := exec.CommandContext(t.Context(), kit.Guard(t), "--listen", listen, "--collector", c.bytefrog, "--metrics", metrics)
		var log bytes.Buffer
		guard.Stdout, guard.Stderr = &log, &log
		require.NoError(t, guard.Start())
		defer func() {
			require.NoError(t, guard.Process.Signal(syscall.SIGTERM))
			assert.NoError(t, guard.Wait(), log.String())
		}()
		testkit.Eventually(t, "the guard listens", func() (bool, string) {
			conn, err := net.Dial("tcp", listen)
			if err != nil {
				return false, err.Error()
			}
			return conn.Close() == nil, ""
		})
		t.Run("", func(t *testing.T) {
			attack(t, listen, flood.Options{})
			startAgents(t, listen)
		})
		if testing.Short() {
			return
		}
		attack(t, metrics, flood.Options{})
		look(t, metrics+"/metrics")
	})
	c.Stop(t)
}
