// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrogguard"
	"github.com/callbraid/callbraid/test/testbed"
)

// BenchmarkBehindAGuard measures for how long a program at full speed behind a guard waits for
// a buffer at the most while its collector is harmed and until all is well again.
func BenchmarkBehindAGuard(b *testing.B) {
	const times = 5
	for _, harm := range []struct {
		name string
		do   func(b *testing.B, c *testbed.Collector, configuration string, g *bytefrogguard.Guard) *testbed.Collector
	}{{"stopped", stopCollector}, {"killed", killCollector}} {
		b.Run(harm.name, func(b *testing.B) {
			endpoint := testbed.Address(b)
			configuration := pipeline(endpoint, "", "", "nop: {}")
			c := testbed.Start(b, configuration)
			g, address := startGuard(b, endpoint)
			p := &tidal{}
			a, results := startTidal(b, address, p)
			var longest time.Duration
			for range times {
				passed := g.Counts().Passed.Load()
				testbed.Eventually(b, "events", func() (bool, string) { return g.Counts().Passed.Load() > passed+1_000_000, "" })
				p.waited()
				c = harm.do(b, c, configuration, g)
				testbed.Eventually(b, "the agent goes on", func() (bool, string) {
					s := g.State()
					return s.Connected == 1 && s.Stalled == 0, fmt.Sprintf("%+v", s)
				})
				longest = max(longest, p.waited())
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-wait-ms")
			b.ReportMetric(0, "ns/op")
			a.Stop()
			require.Equal(b, bytefrogagent.Untraced, await(b, results).Outcome)
		})
	}
}

func stopCollector(b *testing.B, c *testbed.Collector, _ string, g *bytefrogguard.Guard) *testbed.Collector {
	c.Freeze(b)
	testbed.Eventually(b, "the agent is suspended", func() (bool, string) { return g.State().Stalled == 1, "" })
	c.Thaw(b)
	return c
}

func killCollector(b *testing.B, c *testbed.Collector, configuration string, g *bytefrogguard.Guard) *testbed.Collector {
	losses := g.Counts().Losses.Load()
	c.Kill()
	testbed.Eventually(b, "the loss", func() (bool, string) { return g.Counts().Losses.Load() > losses, "" })
	return testbed.Start(b, configuration)
}
