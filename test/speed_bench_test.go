// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

const (
	mavenEvents = 887_366
	// warmRuns are played before it is measured: a collector runs for days.
	warmRuns = 10
	// measuredRuns are played to measure, ten times as many to see that memory
	// doesn't grow with the events.
	measuredRuns, manyRuns = 4, 40
)

// withOrdinaryTelemetry is the configuration with the default level of the collector's own metrics.
// The kit's own level measures the size of all data between components.
func withOrdinaryTelemetry(configuration string) string {
	return strings.Replace(configuration, "service: {", "service: {telemetry: {metrics: {level: normal}}, ", 1)
}

// BenchmarkReplay plays the captured Maven build, over and over in one run, at
// full speed over loopback into the distribution with the nop exporter. It
// reports the processor time of the collector alone, and its peak memory after
// so many builds and after ten times as many.
func BenchmarkReplay(b *testing.B) { benchmarkReplay(b, pairedBy()) }

// BenchmarkReplayWithLazyCollection is the same where garbage waits twice as long.
func BenchmarkReplayWithLazyCollection(b *testing.B) { benchmarkReplay(b, pairedBy("GOGC=200")) }

// BenchmarkReplayCounted is the same with the connector: it makes metrics and profiles of all calls, and the
// spans of one of a hundred traces.
func BenchmarkReplayCounted(b *testing.B) {
	benchmarkReplay(b, func(b *testing.B, endpoint string) *kit.Collector {
		return kit.Start(b, withOrdinaryTelemetry(fmt.Sprintf(counted, endpoint)))
	})
}

const counted = `
receivers: {bytefrog: {endpoint: %q, max_block: 0s}}
connectors: {stack_pairing: {interval: 1s, keep: {ratio: 0.01}}}
exporters: {nop: {}}
service: {pipelines: {
  traces/calls: {receivers: [bytefrog], exporters: [stack_pairing]},
  traces/kept: {receivers: [stack_pairing], exporters: [nop]},
  metrics: {receivers: [stack_pairing], exporters: [nop]},
  profiles: {receivers: [stack_pairing], exporters: [nop]}}}
`

// pairedBy starts a collector with the processor, which sends all spans. They have the attributes of the shipped
// configurations, as those that the connector keeps.
func pairedBy(environment ...string) func(*testing.B, string) *kit.Collector {
	return func(b *testing.B, endpoint string) *kit.Collector {
		return kit.Start(b, withOrdinaryTelemetry(plainPipeline(endpoint, "", "", "nop: {}")), environment...)
	}
}

func benchmarkReplay(b *testing.B, start func(*testing.B, string) *kit.Collector) {
	for b.Loop() {
		endpoint := testkit.Address(b)
		c := start(b, endpoint)
		ended := 0.0
		play := func(builds int) {
			agent{endpoint: endpoint, capture: "maven", replay: replay.Options{Repeat: builds}}.complete(b)
			ended++
			c.AwaitMetric(b, ended, runsEnded)
		}
		play(warmRuns)
		before := c.CPUSoFar(b)
		play(measuredRuns)
		once := c.PeakMemory(b)
		play(manyRuns)
		used := c.CPUSoFar(b) - before
		tenTimes := c.PeakMemory(b)
		c.Stop(b)
		const events = (measuredRuns + manyRuns) * mavenEvents
		b.ReportMetric(float64(used.Nanoseconds())/events, cpuPerEvent)
		b.ReportMetric(events/used.Seconds()/1e6, "Mevents/cpu-s")
		b.ReportMetric(float64(once)/(1<<20), "peak-MiB")
		b.ReportMetric(float64(tenTimes)/(1<<20), "peak-MiB-at-10x")
	}
}
