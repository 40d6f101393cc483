// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/testbed"
)

// places are where the collector listens, and servers that it reads from.
type places struct{ living, killed, agents, relay, publish, request, greys, flames, prometheus string }

func newPlaces(t testing.TB) (p places) {
	for _, place := range []*string{
		&p.living, &p.killed, &p.agents, &p.relay, &p.publish, &p.request, &p.greys, &p.flames, &p.prometheus,
	} {
		*place = testbed.Address(t)
	}
	return p
}

// configuration has all receivers, one exporter that keeps what the backend doesn't take
// on disk, and two that serve who asks.
func configuration(p places, queue, backend string) string {
	return fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
receivers:
  bytefrog/living: {endpoint: %q, service_name: living}
  bytefrog/killed: {endpoint: %q, service_name: killed}
  lttng_live: {endpoint: %q, poll: {list_interval: 100ms}, reconnect: {initial_interval: 10ms, max_interval: 1s}, service_name: lttng}
  rbkit: {servers: [{publish: %q, request: %q, service_name: rbkit}], reconnect: {initial_interval: 10ms, max_interval: 1s}, collection_interval: 1s}
  lttng_jul: {endpoint: %q, port_files: ["${env:DIR}/agent.port"]}
  greys: {servers: [{endpoint: %q, service_name: greys}], protocol: console, monitors: [{class: "*Service*", method: "*", cycle: 1s}], traces: [{class: "*Service1*", method: "*", limit: -1}], collection_interval: 1s}
processors: {stack_pairing: {reorder: {max_wait: 10s}}}
exporters:
  otlp_http:
    endpoint: %q
    compression: none
    sending_queue: {storage: file_storage, sizer: bytes, queue_size: 1073741824, block_on_overflow: true, num_consumers: 4}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
  flame_graph: {endpoint: %q, max_nodes: 200000}
  prometheus: {endpoint: %q, metric_expiration: 30s}
service:
  extensions: [health_check, pprof, file_storage]
  pipelines:
    traces: {receivers: [bytefrog/living, bytefrog/killed, lttng_live, greys, rbkit], processors: [stack_pairing], exporters: [otlp_http, flame_graph]}
    logs: {receivers: [bytefrog/living, bytefrog/killed, lttng_live, lttng_jul, greys, rbkit], exporters: [otlp_http]}
    metrics: {receivers: [bytefrog/living, bytefrog/killed, greys, rbkit], exporters: [otlp_http, prometheus]}
`, queue, p.living, p.killed, p.relay, p.publish, p.request, p.agents, p.greys, backend, p.flames, p.prometheus)
}

func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("CALLBRAID_SOAK"))
	if err != nil {
		t.Skip("it takes as long as one likes: run make soak")
	}
	load, err := strconv.ParseFloat(os.Getenv("CALLBRAID_SOAK_LOAD"), 64)
	require.NoError(t, err, "CALLBRAID_SOAK_LOAD is how many times the usual load to make")

	p, d := newPlaces(t), newDisk(t)
	b, endpoint := serve(t)
	run := &soak{t: t, backend: b, disk: d, collector: testbed.Start(t, configuration(p, d.folder, endpoint)), mortal: newMortal(t, endpoint, load)}
	ctx, end := context.WithTimeout(t.Context(), length)
	defer end()
	run.begin(ctx, p, load, length)
	run.all.Wait()
	run.settle()
	run.report(length, load)
}

// soak is one run, and what it counts.
type soak struct {
	t              testing.TB
	all            sync.WaitGroup // everything that goes on
	collector      *testbed.Collector
	backend        *backend
	disk           *disk
	living, killed sent
	played         played
	mortal         *mortal
	readers        readers
	noises         int64
	faults         faults
	samples        []sample
}

// begin has everything go on until ctx ends.
func (s *soak) begin(ctx context.Context, p places, load float64, length time.Duration) {
	living := programs{endpoint: p.living, rate: baseRate * load, steps: 3}
	for seed := range uint64(3) {
		s.all.Go(func() { s.living.play(ctx, s.t, living, seed) })
	}
	killed := programs{endpoint: p.killed, rate: baseRate * load, steps: 3, killedAfter: 5 * time.Second}
	s.all.Go(func() { s.killed.play(ctx, s.t, killed, 100) })
	s.all.Go(func() { s.mortal.live(ctx) })
	s.all.Go(func() { s.played.rbkit(ctx, s.t, p.publish, p.request) })
	s.all.Go(func() { s.played.greys(ctx, s.t, p.greys) })
	s.all.Go(func() { s.played.agents(ctx, s.t, filepath.Join(s.collector.Dir, "agent.port")) })
	s.all.Go(func() {
		s.played.relay(ctx, s.t, p.relay, filepath.Join("..", "..", "testdata", "lttng", "live", "cygok.zip"))
	})
	s.all.Go(func() {
		s.noises = noise(ctx, []string{p.living, p.killed, p.agents, p.flames, p.prometheus}, 7)
	})
	for _, path := range []string{"/services/living/profile.folded", "/services/living/ui/flamegraph"} {
		s.all.Go(func() { s.readers.read(ctx, p.flames, path) })
	}
	s.all.Go(func() { s.readers.read(ctx, p.prometheus, "/metrics") })
	s.all.Go(func() { s.fail(ctx) })
	s.all.Go(func() { s.sample(ctx, length) })
}

// settle waits until everything that was sent is where it belongs.
func (s *soak) settle() {
	s.t.Helper()
	// On a busy machine much waits when the load ends.
	const patience = 10 * time.Minute
	testbed.EventuallyWithin(s.t, patience, "nobody is connected, no call stream is open and nothing is queued", func() (bool, string) {
		look := s.collector.Look(s.t)
		streams, queued := look.Sum("otelcol_processor_stack_pairing_streams"), look.Sum("otelcol_exporter_queue_size")
		held, servers := look.Sum("otelcol_processor_stack_pairing_held_spans"), look.Sum("otelcol_receiver_rbkit_servers")+look.Sum("otelcol_receiver_greys_servers")
		return streams+queued+held+servers == 0, fmt.Sprintf("%v streams, %v bytes queued, %v spans held, %v servers", streams, queued, held, servers)
	})
	s.mortal.settle(patience)
	testbed.EventuallyWithin(s.t, patience, "what the processor has finished is delivered", func() (bool, string) {
		finished, exported := s.collector.Metric(s.t, "otelcol_processor_stack_pairing_spans"), s.total()
		return exported >= int64(finished), fmt.Sprintf("%v of %v", exported, finished)
	})
	s.awaitMetrics()
}

// awaitMetrics waits until metrics have been said once more: what is not in them then is
// unexplained.
func (s *soak) awaitMetrics() {
	events := int64(s.collector.Metric(s.t, "otelcol_receiver_rbkit_events"))
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if s.backend.sum(rbkitEvents) >= events && s.backend.sum(greysCalls) >= s.played.calls.Load() {
			return
		}
	}
}

// total is the number of spans that were paired and came.
func (s *soak) total() (n int64) {
	for _, service := range paired {
		d := s.backend.of(service)
		n += d.spans + d.duplicates
	}
	return n
}
