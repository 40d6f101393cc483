// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/guard"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// BenchmarkBehindAGuard measures the longest wait for a buffer of a program at full speed behind a
// guard, while its collector is disturbed and until it works again. The program may wait as long as
// the guard's options allow in a second, plus the wait for a processor of an otherwise idle
// program.
func BenchmarkBehindAGuard(b *testing.B) {
	const times = 5
	for _, harm := range []struct {
		name string
		do   func(b *testing.B, c *kit.Collector, configuration string, g *guard.Guard) *kit.Collector
	}{{"stopped", stopCollector}, {"killed", killCollector}} {
		b.Run(harm.name, func(b *testing.B) {
			endpoint := testkit.Address(b)
			configuration := pipeline(endpoint, "", "", "nop: {}")
			c := kit.Start(b, configuration)
			g, address := startGuard(b, endpoint)
			p := &tidal{}
			a, results := startTidal(b, address, p)
			idler := newIdler(b)
			var longest, late time.Duration
			for range times {
				passed := g.Counts().Passed.Load()
				testkit.Eventually(b, "events", func() (bool, string) { return g.Counts().Passed.Load() > passed+1_000_000, "" })
				p.waited()
				idler.late.Store(0)
				c = harm.do(b, c, configuration, g)
				testkit.Eventually(b, "the agent goes on", func() (bool, string) {
					s := g.State()
					return s.Connected == 1 && s.Stalled == 0, fmt.Sprintf("%+v", s)
				})
				longest = max(longest, p.waited())
				late = max(late, time.Duration(idler.late.Load()))
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-wait-ms")
			b.ReportMetric(float64(late.Microseconds())/1000, "idler-ms")
			b.ReportMetric(float64((guard.DefaultOptions().MaxWaitPerSecond+late).Microseconds())/1000, "allowed-ms")
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

func stopCollector(b *testing.B, c *kit.Collector, _ string, g *guard.Guard) *kit.Collector {
	c.Freeze(b)
	testkit.Eventually(b, "the agent is suspended", func() (bool, string) { return g.State().Stalled == 1, "" })
	c.Thaw(b)
	return c
}

func killCollector(b *testing.B, c *kit.Collector, configuration string, g *guard.Guard) *kit.Collector {
	losses := g.Counts().Losses.Load()
	c.Kill()
	testkit.Eventually(b, "the loss", func() (bool, string) { return g.Counts().Losses.Load() > losses, "" })
	return kit.Start(b, configuration)
}

// BenchmarkTimeTraced measures for programs of several call rates the part of time in which they
// are traced, and the part of that in which they wait for the collector, without a guard and with
// one. The number of calls would be no measure: a suspended program makes a thousand times as many.
func BenchmarkTimeTraced(b *testing.B) {
	const runTime = 5 * time.Second
	// With two busy threads the real agent makes that many against a reader that is
	// infinitely fast.
	const fullSpeed = 3_200_000
	for _, rate := range []int{10_000, 200_000, fullSpeed} {
		for _, waitPerSecond := range []time.Duration{-1, 100 * time.Millisecond, 500 * time.Millisecond, time.Second} {
			name := fmt.Sprintf("calls=%d/guard=none", rate)
			if waitPerSecond >= 0 {
				name = fmt.Sprintf("calls=%d/max-wait-per-second=%v", rate, waitPerSecond)
			}
			b.Run(name, func(b *testing.B) {
				var sum paced
				for b.Loop() {
					endpoint := testkit.Address(b)
					c := kit.Start(b, pipeline(endpoint, "", "", "nop: {}"))
					if waitPerSecond >= 0 {
						_, endpoint = startGuard(b, endpoint, func(o *guard.Options) { o.MaxWaitPerSecond = waitPerSecond })
					}
					p := &paced{rate: rate, until: runTime}
					a := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, Settle: time.Second}, p)
					result := a.Run(b.Context())
					require.Equal(b, bytefrogagent.Completed, result.Outcome, result.Reason)
					sum.took, sum.suspended, sum.next = sum.took+p.took, sum.suspended+p.suspended, sum.next+p.next
					sum.waiting, sum.longest = sum.waiting+p.waiting, max(sum.longest, p.longest)
					c.Stop(b)
				}
				traced := sum.took - sum.suspended
				b.ReportMetric(100*traced.Seconds()/sum.took.Seconds(), "%-of-time-traced")
				b.ReportMetric(100*sum.waiting.Seconds()/traced.Seconds(), "%-of-that-waiting")
				b.ReportMetric(float64(sum.next)/2/traced.Seconds(), "calls/traced-s")
				b.ReportMetric(float64(sum.longest.Microseconds())/1000, "longest-wait-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// paced is a program that makes so many calls a second, as long as it is let.
type paced struct {
	tidal
	rate  int
	until time.Duration
	// took is the time of its run, and suspended the part in which it was suspended.
	took, suspended time.Duration
}

func (p *paced) Run(t *bytefrogagent.Tracer) error {
	p.begins = []uint32{0}
	began := time.Now()
	defer func() { p.took = time.Since(began) }()
	// due counts the calls from since on. Calls of the time in which it waited are not made later.
	since, made := began, uint32(0)
	for time.Since(began) < p.until {
		if ahead := time.Duration(float64(p.next-made)/2/float64(p.rate)*float64(time.Second)) - time.Since(since); ahead > 0 {
			time.Sleep(ahead)
		} else if ahead < -time.Second/100 {
			since, made = time.Now(), p.next
		}
		err := p.fill(t)
		for errors.Is(err, bytefrogagent.ErrSuspended) {
			asked := time.Now()
			t.Break(p.next)
			err = t.AwaitUnsuspend()
			p.suspended += time.Since(asked)
			since, made = time.Now(), p.next
		}
		if err != nil {
			return err
		}
	}
	return nil
}
