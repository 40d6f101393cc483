// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/test/kit"
)

// Fifty simulated servers with five commands each: the collector's memory, time of processors and open connections stay small.
// Each server sees one open poll at a time, and is restored at the end. On a busy machine this takes longer than by default.
func TestFiftyArthasServersNeedLittle(t *testing.T) {
	t.Parallel()
	const servers, commands, seconds = 50, 5, 8
	load := arthasserver.Load{Package: "com.example.shop", Classes: 5, Methods: 4, Rate: 10, Threads: 2, Failures: 0.1, Seed: 1}
	var playing sync.WaitGroup
	t.Cleanup(playing.Wait) // the context of the test has ended then
	var all []*arthasserver.Server
	var endpoints strings.Builder
	for range servers {
		server := arthasserver.New(arthasserver.Settings{Classes: load.ClassMethods()})
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		playing.Go(func() { server.Play(t.Context(), load) })
		playing.Go(func() { _ = server.Serve(t.Context(), listener) }) // it ends with the test
		all = append(all, server)
		fmt.Fprintf(&endpoints, "{endpoint: \"http://%s\"}, ", listener.Addr())
	}
	c := kit.Start(t, fmt.Sprintf(`
receivers:
  arthas:
    servers: [%s]
    monitors: [{class: "com.example.*", method: "*", cycle: 5s}]
    traces: [{class: "com.example.shop.Service1", method: "*", limit: -1}]
    stacks: [{class: "com.example.shop.Service2", method: "*", limit: -1}]
    watches: [{class: "com.example.shop.Service3", method: "*", limit: -1}]
    records: [{class: "com.example.shop.Service4", method: "*", limit: 1000}]
    shutdown_timeout: 40s
exporters: {nop: {}}
service: {pipelines: {
  traces: {receivers: [arthas], exporters: [nop]}, logs: {receivers: [arthas], exporters: [nop]}, metrics: {receivers: [arthas], exporters: [nop]}}}
`, endpoints.String()))
	c.AwaitMetric(t, servers, "otelcol_receiver_arthas_server_up")
	c.AwaitMetric(t, servers*commands, "otelcol_receiver_arthas_results")
	before, most, mostFiles := c.CPUSoFar(t), 0, 0
	began := time.Now()
	for ticker := time.NewTicker(100 * time.Millisecond); time.Since(began) < seconds*time.Second; <-ticker.C {
		most, mostFiles = max(most, c.Connections(t)), max(mostFiles, c.OpenFiles(t))
	}
	used := float64(c.CPUSoFar(t)-before) / float64(time.Since(began))
	memory, results := c.PeakMemory(t), c.Metric(t, "otelcol_receiver_arthas_results")
	losses := c.Metric(t, "otelcol_receiver_arthas_losses")
	stopping := time.Now()
	c.Stop(t)
	t.Logf("%d servers, %d commands each: %.0f results, %d MiB, %.1f%% of a processor, at most %d open connections and %d open files, %.0f losses, a shutdown of %v",
		servers, commands, results, memory>>20, 100*used, most, mostFiles, losses, time.Since(stopping))
	for _, server := range all {
		_, polls := server.Requests()
		assert.Equal(t, 1, polls, "open polls at the same time")
		assert.Empty(t, server.Instrumented())
		assert.Zero(t, server.Lives()[0].Sessions)
	}
	assert.Less(t, memory, uint64(400<<20))
	// Each server has one open poll. Others are short requests.
	assert.LessOrEqual(t, most, 2*servers)
}
