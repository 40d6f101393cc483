// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// The cost of a deployment with the shipped configurations, including OTLP to the backend and
// metrics by function: the processor time of the collectors, without that of the backend and the agents.
// The number of events per second depends on the number of cores.

const (
	// benchStreams is the number of simultaneous streams, so that each of three pairing collectors has some.
	benchStreams = 9
	// benchEvents are of a build, in each.
	benchEvents = 200_000
)

// cost is the processor time of some collectors since it was begun.
type cost struct {
	of    []*kit.Collector
	began time.Duration
}

func beginCost(b *testing.B, of ...*kit.Collector) *cost {
	c := &cost{of: of}
	c.began = c.soFar(b)
	return c
}

func (c *cost) soFar(b *testing.B) (used time.Duration) {
	for _, collector := range c.of {
		used += collector.CPUSoFar(b)
	}
	return used - c.began
}

// per is the time for each of n, in nanoseconds.
func (c *cost) per(b *testing.B, n int) float64 { return float64(c.soFar(b)) / float64(n) }

// playBuilds plays the beginning of a build in each stream, and waits until a metric of a collector has
// all calls, which it had some of before.
func playBuilds(b *testing.B, of *kit.Collector, metric string, before int, endpoints []string) (calls int) {
	run := openCapture(b, "maven").Before(benchEvents)
	startFleet(b, benchStreams, endpoints, run).complete(b)
	for _, e := range run.Events {
		if e.Type == byte(bytefrog.TypeMethodEntry) {
			calls += benchStreams
		}
	}
	of.AwaitMetric(b, float64(before+calls), metric)
	return before + calls
}

// toNowhere is an exporter of a backend that drops everything.
func toNowhere(i int) string { return fmt.Sprintf("nop/%d:", i) }

// BenchmarkOneCollector measures config/jaeger-prometheus.yaml: with all traces, and with its limit of spans. The captures
// are played faster than their programs ran, so the limit leaves out most traces.
func BenchmarkOneCollector(b *testing.B) {
	b.Run("all_traces", func(b *testing.B) { benchmarkOneCollector(b, "0") })
	b.Run("as_shipped", func(b *testing.B) { benchmarkOneCollector(b, "20000") })
}

func benchmarkOneCollector(b *testing.B, maxSpansPerSecond string) {
	for b.Loop() {
		tt := newTiersTo(b, 0, toNowhere)
		agents := testkit.Address(b)
		settings := unusedReceivers(b)
		maps.Copy(settings, map[string]string{
			"endpoint: localhost:13135": "${env:HEALTH}", "port: 8887": "${env:METRICS_PORT}", "endpoint: localhost:8765": agents,
			"endpoint: localhost:4317": tt.jaegers[0], "endpoint: localhost:8889": testkit.Address(b), "max_spans_per_second: 20000": maxSpansPerSecond,
		})
		c := kit.Start(b, shipped(b, "jaeger-prometheus.yaml", settings), "CALLBRAID_DATA="+b.TempDir())
		of, metric := tt.backend, acceptedSpans
		if maxSpansPerSecond != "0" {
			of, metric = c, connectorMetrics+"spans"
		}
		calls := playBuilds(b, of, metric, 0, []string{agents})
		cost := beginCost(b, c)
		playBuilds(b, of, metric, calls, []string{agents})
		b.ReportMetric(cost.per(b, benchStreams*benchEvents), cpuPerEvent)
		b.ReportMetric(float64(c.PeakMemory(b))/(1<<20), "peak-MiB")
	}
}

const (
	cpuPerEvent  = "cpu-ns/event"
	batchesTaken = connectorMetrics + "batches"
	// acceptedSpans is the metric of a backend that has received spans.
	acceptedSpans = "otelcol_receiver_accepted_spans"
)

// BenchmarkTiers measures one collector that receives, and so many that pair.
func BenchmarkTiers(b *testing.B) {
	for n := range 3 {
		b.Run(fmt.Sprintf("%d_pairing", n+1), func(b *testing.B) {
			for b.Loop() {
				// On a busy machine agents are slow, and batches are closed before they are full.
				tt := benchTiers(b, n+1, "batch: {max_delay: 2s}")
				calls := playBuilds(b, tt.backend, acceptedSpans, 0, tt.agents)
				batches := sum(b, tt.pairing, batchesTaken)
				receive, pair := beginCost(b, tt.receiving...), beginCost(b, tt.pairing...)
				playBuilds(b, tt.backend, acceptedSpans, calls, tt.agents)
				b.ReportMetric(benchStreams*benchEvents/(sum(b, tt.pairing, batchesTaken)-batches), "events/batch")
				b.ReportMetric(receive.per(b, benchStreams*benchEvents), "receive-"+cpuPerEvent)
				b.ReportMetric(pair.per(b, benchStreams*benchEvents), "pair-"+cpuPerEvent)
				b.ReportMetric(float64(tt.receiving[0].PeakMemory(b))/(1<<20), "receive-peak-MiB")
				b.ReportMetric(float64(tt.pairing[0].PeakMemory(b))/(1<<20), "pair-peak-MiB")
				tt.stop()
			}
		})
	}
}

// benchTiers starts one collector that receives and n that pair.
func benchTiers(b *testing.B, n int, settings ...string) *tiers {
	tt := newTiersTo(b, n, toNowhere)
	tt.bytefrog = settings
	var addresses []string
	for range n {
		addresses = append(addresses, testkit.Address(b))
		tt.pair(addresses[len(addresses)-1], "")
	}
	tt.resolver = static(addresses...)
	tt.receive(b.TempDir())
	return tt
}

// lookRarely waits until met is true. Each look at a collector's metrics costs it some
// milliseconds, which would be measured, too.
func lookRarely(b *testing.B, met func() bool) {
	b.Helper()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for deadline := time.Now().Add(testkit.Patience); !met(); <-look.C {
		if time.Now().After(deadline) {
			b.Fatalf("expected the measured work to end within %v", testkit.Patience)
		}
	}
}

// BenchmarkSmallBatches measures the fixed cost of a batch: silent streams with very frequent
// keep-alive batches.
func BenchmarkSmallBatches(b *testing.B) {
	const streams, batches = 200, 20_000
	for b.Loop() {
		tt := benchTiers(b, 1, "keepalive_interval: 100ms")
		silent := newStage(1)
		f := startFleet(b, streams, tt.agents, openCapture(b, "shop"), silent)
		f.at(b, silent)
		taken := func() int { return int(tt.pairing[0].Metric(b, batchesTaken)) }
		before := taken()
		receive, pair := beginCost(b, tt.receiving...), beginCost(b, tt.pairing...)
		n := 0
		lookRarely(b, func() bool { n = taken() - before; return n >= batches })
		b.ReportMetric(receive.per(b, n)/1000, "receive-cpu-µs/batch")
		b.ReportMetric(pair.per(b, n)/1000, "pair-cpu-µs/batch")
		close(silent.open)
		f.complete(b)
		tt.stop()
	}
}

// BenchmarkShortStreams measures the fixed cost of a stream: agents that connect and end with
// hardly any event.
func BenchmarkShortStreams(b *testing.B) {
	const atOnce, rounds, events = 20, 11, 2 // 255 runs are the most that the receiver's protocol has numbers for
	for b.Loop() {
		tt := benchTiers(b, 1)
		run := openCapture(b, "shop").Before(events)
		play := func() { startFleet(b, atOnce, tt.agents, run).complete(b) }
		play()
		receive, pair := beginCost(b, tt.receiving...), beginCost(b, tt.pairing...)
		for range rounds {
			play()
		}
		lookRarely(b, func() bool { return tt.receiving[0].Metric(b, runsEnded) == atOnce*(rounds+1) })
		b.ReportMetric(receive.per(b, atOnce*rounds)/1000, "receive-cpu-µs/stream")
		b.ReportMetric(pair.per(b, atOnce*rounds)/1000, "pair-cpu-µs/stream")
		tt.stop()
	}
}
