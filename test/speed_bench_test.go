// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/callbraid/callbraid/internal/bytefrogagent/replay"
	"github.com/callbraid/callbraid/test/testbed"
)

const (
	mavenEvents = 887_366
	// warmRuns are played before it is measured: a collector runs for days.
	warmRuns = 2
	// measuredRuns are played to measure, ten times as many to see that memory
	// doesn't grow with the events.
	measuredRuns, manyRuns = 5, 50
)

// BenchmarkReplay plays the captured Maven build, over and over in one run, at
// full speed over loopback into the distribution with the nop exporter. It
// reports the processor time of the collector alone, and its peak memory after
// 5 and after 50 builds.
func BenchmarkReplay(b *testing.B) {
	for b.Loop() {
		endpoint := testbed.Address(b)
		c := testbed.Start(b, pipeline(endpoint, "", "", "nop: {}"))
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
		b.ReportMetric((measuredRuns+manyRuns)*mavenEvents/used.Seconds()/1e6, "Mevents/cpu-s")
		b.ReportMetric(float64(once)/(1<<20), "peak-MiB")
		b.ReportMetric(float64(tenTimes)/(1<<20), "peak-MiB-at-10x")
	}
}
