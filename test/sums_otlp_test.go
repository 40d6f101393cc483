// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// The connector's metrics and profiles go by OTLP to another collector, which is not there at first, then refuses, and
// is replaced in the middle. All calls arrive once, and the flame graph of the last collector has its part of them.
func TestSumsReachAnotherCollectorByOTLP(t *testing.T) {
	t.Parallel()
	// Several consumers of a queue would send newer metrics before older ones.
	const patient = "compression: gzip, retry_on_failure: {initial_interval: 20ms, max_interval: 100ms, max_elapsed_time: 0s}"
	for name, exporter := range map[string]string{
		"gRPC":                           "otlp_grpc: {endpoint: %q, tls: {insecure: true}, " + patient + ", sending_queue: {num_consumers: 1}}",
		"HTTP, with the queue on a disk": "otlp_http: {endpoint: http://%s, " + patient + ", sending_queue: {num_consumers: 1, storage: file_storage}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, endpoint, between, pages := newSumBackend(t), testkit.Address(t), testkit.Address(t), testkit.Address(t)
			b.answerSums(refuse, refuse)
			exporter := fmt.Sprintf(exporter, between)
			first := kit.Start(t, fmt.Sprintf(`
extensions: {file_storage: {directory: "${env:DIR}"}}
receivers: {bytefrog: {endpoint: %q, service_name: shop}}
connectors: {stack_pairing: {interval: 100ms}}
exporters: {%s}
service:
  extensions: [health_check, pprof, file_storage]
  pipelines:
    traces: {receivers: [bytefrog], exporters: [stack_pairing]}
    metrics: {receivers: [stack_pairing], exporters: [%[3]s]}
    profiles: {receivers: [stack_pairing], exporters: [%[3]s]}
`, endpoint, exporter, exporterName(exporter)))
			protocol := map[string]string{"otlp_grpc": "grpc", "otlp_http": "http"}[exporterName(exporter)]
			second := func() *kit.Collector {
				return kit.Start(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {%s: {endpoint: %q}}}}
exporters: {%s, flame_graph: {endpoint: %q}}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [otlp_http]}
    profiles: {receivers: [otlp], exporters: [otlp_http, flame_graph]}
`, protocol, between, toBackend(b.endpoint), pages))
			}

			run := openCapture(t, "shop")
			stages := []*stage{newStage(shopEvents / 3), newStage(2 * shopEvents / 3)}
			f := startFleet(t, 1, []string{endpoint}, run, stages...)
			f.at(t, stages[0])
			first.AwaitMetric(t, 2, "otelcol_exporter_queue_size")
			one := second()
			testkit.Eventually(t, "metrics and profiles are refused", func() (bool, string) {
				b.mu.Lock()
				defer b.mu.Unlock()
				return b.refusedPoints > 0 && b.refusedSamples > 0, fmt.Sprint(b.refusedPoints, b.refusedSamples)
			})
			b.answerSums(accept, accept)
			b.awaitCalls(callsIn(endedPaths(run.Before(stages[0].before))))
			instance := b.only(t)
			_, before := b.sums(instance)
			one.Stop(t)

			close(stages[0].open)
			f.at(t, stages[1])
			first.AwaitMetric(t, 2, "otelcol_exporter_queue_size")
			two := second()
			b.awaitCalls(callsIn(endedPaths(run.Before(stages[1].before))))
			close(stages[1].open)
			f.complete(t)
			want := reference.Spans(run, defaultRules)
			b.awaitCalls(len(want.Spans))
			b.check(t, want, instance)
			_, all := b.sums(instance)
			// The collector passes profiles to the backend first.
			part := grown(before, all)
			testkit.Eventually(t, "the flame graph has its part", func() (bool, string) {
				graph := stacksOfPage(t, pages, "shop")
				return maps.Equal(graph, part), fmt.Sprintf("%d of %d stacks", len(graph), len(part))
			})
			first.Stop(t)
			two.Stop(t)
			assert.Equal(t, []string{instance}, b.instances())
		})
	}
}

// callsIn returns the number of calls of all stacks.
func callsIn(stacks map[string]values) (calls int) {
	for _, v := range stacks {
		calls += int(v[0])
	}
	return calls
}

// grown returns the stacks that have grown, with the growth of their values.
func grown(before, now map[string]values) map[string]values {
	growth := maps.Clone(now)
	for stack, was := range before {
		is := growth[stack]
		for i := range is {
			is[i] -= was[i]
		}
		growth[stack] = is
	}
	maps.DeleteFunc(growth, func(_ string, v values) bool { return v == values{} })
	return growth
}
