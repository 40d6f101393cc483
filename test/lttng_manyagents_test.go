// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// More agents than a machine has, which are simulated.

const (
	manyAgents, manyLoggers = 1000, 500
	// mostMemory is the maximum memory of a collector for them, in bytes.
	mostMemory = 400 << 20
	// unusedPID is above all process IDs of Linux.
	unusedPID = 1<<22 + 1
)

// manySwitcher configures a collector for many agents. The time limits are long, because a disconnected agent
// reconnects and receives all commands again.
func manySwitcher(endpoint, listInterval string) string {
	return fmt.Sprintf(`
receivers:
  lttng_jul:
    endpoint: %q
    list_interval: %s
    collection_interval: 100ms
    command_timeout: 2m
    shutdown_timeout: 2m
    limits: {registration_timeout: 2m}
    enable:
      - {domain: jul, logger: "com.example.shop.*"}
      - {domain: jul, logger: "org.example.*", level: INFO}
    contexts:
      - {provider: test, name: request}
exporters:
  nop:
  file/metrics: {path: "${env:DIR}/metrics.json", flush_interval: 50ms}
service:
  pipelines:
    logs: {receivers: [lttng_jul], exporters: [nop]}
    metrics: {receivers: [lttng_jul], exporters: [file/metrics]}
`, endpoint, listInterval)
}

// playedAgents are simulated agents of one collector.
type playedAgents struct {
	all []*logagent.Agent
	// stop ends all agents, which simulates the end of their programs.
	stop func()
}

// playAgents runs simulated agents until the end of the test, each with this number of loggers. They report the
// process ID of the test, so the collector finds their process as with real ones.
func playAgents(t testing.TB, endpoint string, agents, loggers int) *playedAgents {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	p := &playedAgents{stop: func() { cancel(); running.Wait() }}
	t.Cleanup(p.stop)
	names := logagent.Names(loggers)
	for range agents {
		a := logagent.New(logagent.Options{
			Address: endpoint, PID: uint32(os.Getpid()), Loggers: names,
			HandlerTimeout: time.Hour, // only the collector releases programs, also on a busy machine
		})
		p.all = append(p.all, a)
		running.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return p
}

// stats returns the sum of all agents' counters.
func (p *playedAgents) stats() (all logagent.Stats) {
	for _, a := range p.all {
		all.Add(a.Stats())
	}
	return all
}

// enabled returns the number of enabled patterns and contexts in all agents.
func (p *playedAgents) enabled() (n int) {
	for _, a := range p.all {
		for _, of := range []map[string]int{a.Enabled(), a.Contexts()} {
			for _, count := range of {
				n += count
			}
		}
	}
	return n
}

// awaitListed waits until the collector's metric of loggers has this value.
func awaitListed(t testing.TB, c *kit.Collector, loggers int64) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d loggers", loggers), func() (bool, string) {
		got := lastPoint(t, c, "lttng.logger.count")
		return got == loggers, fmt.Sprint(got)
	})
}

// lastPoint returns the sum of a metric's last points in the collector's file.
func lastPoint(t testing.TB, c *kit.Collector, name string) (sum int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "metrics.json"))
	require.NoError(t, err)
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be incomplete
	if len(text) == 0 {
		return 0
	}
	line := text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]
	require.True(t, json.Valid(line))
	var unmarshaler pmetric.JSONUnmarshaler
	metrics, err := unmarshaler.UnmarshalMetrics(line)
	require.NoError(t, err)
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if metric.Name() != name {
					continue
				}
				for _, point := range metric.Sum().DataPoints().All() {
					sum += point.IntValue()
				}
			}
		}
	}
	return sum
}

// A thousand agents with 500 loggers each are registered, released, switched and listed, repeatedly and without
// growing memory. At the end their loggers are restored.
func TestAThousandAgentsAreListedAndRestored(t *testing.T) {
	endpoint := testkit.Address(t)
	c := kit.Start(t, manySwitcher(endpoint, "1s"))
	before := c.Goroutines(t)
	p := playAgents(t, endpoint, manyAgents, manyLoggers)
	awaitListed(t, c, manyAgents*manyLoggers)
	assert.EqualValues(t, manyAgents, c.Metric(t, agentsNow))
	s := p.stats()
	assert.Equal(t, manyAgents, s.Connections)
	assert.Equal(t, manyAgents, s.Handlers)
	assert.Zero(t, s.HandlerTimeouts)
	assert.Equal(t, 2*manyAgents, s.Commands[lttngagent.CommandEnable])
	assert.Equal(t, manyAgents, s.Commands[lttngagent.CommandEnableContext])
	assert.Equal(t, 3*manyAgents, p.enabled())

	for _, a := range p.all {
		a.Attach("com.example.late")
	}
	awaitListed(t, c, manyAgents*(manyLoggers+1))
	peak := c.PeakMemory(t)
	lists := p.stats().Commands[lttngagent.CommandList]
	testkit.Eventually(t, "five more lists of each", func() (bool, string) {
		n := p.stats().Commands[lttngagent.CommandList]
		return n >= lists+5*manyAgents, fmt.Sprint(n - lists)
	})
	later := c.PeakMemory(t)
	t.Logf("peak memory: %d MiB when all are listed, %d MiB five lists later; the slowest first handler took %v",
		peak>>20, later>>20, p.stats().HandlerWait.Round(time.Millisecond))
	assert.Less(t, peak, uint64(mostMemory))
	// Freed memory is reused, except for some that the next collection frees.
	assert.Less(t, later, peak+peak/4, "lists that come again and again take no more memory")

	goroutines := c.Goroutines(t) - before
	assert.Less(t, goroutines, 2*manyAgents+100)
	c.Stop(t)
	assert.Zero(t, p.enabled(), "everything enabled is disabled again")
	assert.Zero(t, p.stats().Unanswered)
}

// BenchmarkListAgents measures the time from the agents' connection until the collector's metric has the loggers of
// all agents, and the collector's processor time for each. It also does so for a tenth of the agents.
func BenchmarkListAgents(b *testing.B) {
	for _, agents := range []int{manyAgents, manyAgents / 10} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			for b.Loop() {
				endpoint := testkit.Address(b)
				c := kit.Start(b, manySwitcher(endpoint, "3s"))
				begin, before := time.Now(), c.CPUSoFar(b)
				p := playAgents(b, endpoint, agents, manyLoggers)
				awaitListed(b, c, int64(agents*manyLoggers))
				b.ReportMetric(time.Since(begin).Seconds(), "listed-s")
				b.ReportMetric(float64((c.CPUSoFar(b)-before).Microseconds())/float64(agents), "cpu-us/agent")
				p.stop()
				c.Stop(b)
			}
		})
	}
}
