// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
)

// places are the addresses of the collector's listeners, and of the servers that it reads.
type places struct {
	living, killed, summed, summedKilled, agents, relay, publish, request, greys, arthas, flames, prometheus string
	hostile                                                                                                  hostilePlaces
}

// hostilePlaces are the addresses for attackers alone.
type hostilePlaces struct{ bytefrog, relay, publish, greys, arthas, otlpGRPC, otlpHTTP string }

func newPlaces(t testing.TB) (p places) {
	for _, place := range []*string{
		&p.living, &p.killed, &p.summed, &p.summedKilled, &p.agents, &p.relay, &p.publish, &p.request, &p.greys, &p.arthas, &p.flames, &p.prometheus,
		&p.hostile.bytefrog, &p.hostile.relay, &p.hostile.publish, &p.hostile.greys, &p.hostile.arthas, &p.hostile.otlpGRPC, &p.hostile.otlpHTTP,
	} {
		*place = testkit.Address(t)
	}
	return p
}

// configuration has all receivers, the processors and the connector of the shipped configurations, one exporter with
// a queue on disk, and two that serve pages. The components for attackers are in the same process,
// and their names end in /hostile.
func configuration(p places, queue, backend string) string {
	return fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
  memory_budget:
receivers:
  bytefrog/living: {endpoint: %q, service_name: living, max_block: 0s}
  bytefrog/killed: {endpoint: %q, service_name: killed, max_block: 0s}
  bytefrog/summed: {endpoint: %q, service_name: summed, max_block: 0s}
  bytefrog/summed_killed: {endpoint: %q, service_name: summed_killed, max_block: 0s}
  lttng_live: {endpoint: %q, poll: {list_interval: 100ms}, reconnect: {initial_interval: 10ms, max_interval: 1s}, service_name: lttng}
  rbkit: {servers: [{publish: %q, request: %q, service_name: rbkit}], reconnect: {initial_interval: 10ms, max_interval: 1s}, collection_interval: 1s}
  lttng_jul: {endpoint: %q, port_files: ["${env:DIR}/agent.port"]}
  greys: {servers: [{endpoint: %q, service_name: greys}], protocol: console, monitors: [{class: "*Service*", method: "*", cycle: 1s}], traces: [{class: "*Service1*", method: "*", limit: -1}], collection_interval: 1s}
  arthas: {servers: [{endpoint: "http://%s", service_name: arthas}], poll_interval: 50ms, idle_poll_interval: 500ms, reconnect: {initial_interval: 10ms, max_interval: 1s}, monitors: [{class: "*Service*", method: "*", cycle: 1s}], traces: [{class: "*Service1*", method: "*", limit: -1}], jvm: {interval: 5s}, profiles: {period: 5s}, storage: file_storage, collection_interval: 1s}
  bytefrog/hostile: {endpoint: %q}
  lttng_live/hostile: {endpoint: %q, reconnect: {initial_interval: 1s, max_interval: 1s}}
  rbkit/hostile: {servers: [{publish: %q}], reconnect: {initial_interval: 1s, max_interval: 1s}}
  greys/hostile: {servers: [{endpoint: %q}], protocol: console, monitors: [{class: "*", method: "*", cycle: 5s}], traces: [{class: "*", method: "*", limit: -1}], reconnect: {initial_interval: 1s, max_interval: 1s}}
  arthas/hostile: {servers: [{endpoint: "http://%s"}], monitors: [{class: "*", method: "*", cycle: 5s, max_classes: 5000}], traces: [{class: "*", method: "*", limit: -1, max_classes: 5000}], profiles: {period: 5s}, reconnect: {initial_interval: 1s, max_interval: 1s}}
  otlp/hostile: {protocols: {grpc: {endpoint: %q, max_recv_msg_size_mib: 2}, http: {endpoint: %q, max_request_body_size: 2097152}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1024, spike_limit_mib: 256}
  stack_pairing: {span_attributes: {sequence: true}, reorder: {max_wait: 10s}}
  stack_pairing/hostile:
connectors:
  stack_pairing: {span_attributes: {sequence: true}, reorder: {max_wait: 10s}, interval: 10s, metrics: {expiration: 1m}, keep: {ratio: 0.3, max_spans_per_second: 200}}
exporters:
  nop:
  otlp_http:
    endpoint: %q
    compression: none
    sending_queue: {storage: file_storage, sizer: bytes, queue_size: 16777216, block_on_overflow: true, num_consumers: 4}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
  flame_graph: {endpoint: %q, max_nodes: 100000, max_pending: 50000}
  prometheus: {endpoint: %q, metric_expiration: 30s, middlewares: [{id: memory_budget}]}
service:
  extensions: [health_check, pprof, file_storage, memory_budget]
  pipelines:
    traces: {receivers: [bytefrog/living, bytefrog/killed, lttng_live, greys, arthas, rbkit], processors: [memory_limiter, stack_pairing], exporters: [otlp_http, flame_graph]}
    logs: {receivers: [bytefrog/living, bytefrog/killed, lttng_live, lttng_jul, greys, arthas, rbkit], exporters: [otlp_http]}
    metrics: {receivers: [bytefrog/living, bytefrog/killed, greys, arthas, rbkit], exporters: [otlp_http, prometheus]}
    traces/summed: {receivers: [bytefrog/summed, bytefrog/summed_killed], processors: [memory_limiter], exporters: [stack_pairing]}
    traces/kept: {receivers: [stack_pairing], exporters: [otlp_http]}
    metrics/summed: {receivers: [stack_pairing], exporters: [otlp_http, prometheus]}
    profiles: {receivers: [stack_pairing, arthas], exporters: [otlp_http, flame_graph]}
    traces/hostile: {receivers: [bytefrog/hostile, lttng_live/hostile, rbkit/hostile, greys/hostile, arthas/hostile, otlp/hostile], processors: [memory_limiter, stack_pairing/hostile], exporters: [otlp_http, flame_graph]}
    logs/hostile: {receivers: [bytefrog/hostile, lttng_live/hostile, rbkit/hostile, greys/hostile, arthas/hostile], processors: [memory_limiter], exporters: [nop]}
    metrics/hostile: {receivers: [bytefrog/hostile, lttng_live/hostile, greys/hostile, arthas/hostile], processors: [memory_limiter], exporters: [prometheus]}
    profiles/hostile: {receivers: [arthas/hostile], exporters: [flame_graph]}
    metrics/rbkit: {receivers: [rbkit/hostile], exporters: [otlp_http, prometheus]}
`, queue, p.living, p.killed, p.summed, p.summedKilled, p.relay, p.publish, p.request, p.agents, p.greys, p.arthas,
		p.hostile.bytefrog, p.hostile.relay, p.hostile.publish, p.hostile.greys, p.hostile.arthas, p.hostile.otlpGRPC, p.hostile.otlpHTTP,
		backend, p.flames, p.prometheus)
}
