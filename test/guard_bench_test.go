// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrogguard"
	"github.com/callbraid/callbraid/test/testbed"
)

// BenchmarkBehindAGuard measures for how long a program at full speed behind a guard waits for
// a buffer at the most while its collector is harmed and until all is well again. It may wait for
// what the guard's options allow in a second, and for a processor as long as one that asks for
// nothing else.
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
			idler := newIdler(b)
			var longest, late time.Duration
			for range times {
				passed := g.Counts().Passed.Load()
				testbed.Eventually(b, "events", func() (bool, string) { return g.Counts().Passed.Load() > passed+1_000_000, "" })
				p.waited()
				idler.late.Store(0)
				c = harm.do(b, c, configuration, g)
				testbed.Eventually(b, "the agent goes on", func() (bool, string) {
					s := g.State()
					return s.Connected == 1 && s.Stalled == 0, fmt.Sprintf("%+v", s)
				})
				longest = max(longest, p.waited())
				late = max(late, time.Duration(idler.late.Load()))
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-wait-ms")
			b.ReportMetric(float64(late.Microseconds())/1000, "idler-ms")
			b.ReportMetric(float64((bytefrogguard.DefaultOptions().MaxWaitPerSecond+late).Microseconds())/1000, "allowed-ms")
			b.ReportMetric(0, "ns/op")
			a.Stop()
			require.Equal(b, bytefrogagent.Untraced, await(b, results).Outcome)
		})
	}
}

// idler sleeps for a millisecond, again and again.
type idler struct {
	// late is how much later than that it was awake at the most, in nanoseconds.
	late atomic.Int64
}

// newIdler starts one. It ends with the benchmark.
func newIdler(b *testing.B) *idler {
	i := &idler{}
	var running sync.WaitGroup
	ended := make(chan struct{})
	b.Cleanup(func() { close(ended); running.Wait() })
	running.Go(func() {
		for {
			asked := time.Now()
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
			i.late.Store(max(i.late.Load(), int64(time.Since(asked)-time.Millisecond)))
		}
	})
	return i
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
