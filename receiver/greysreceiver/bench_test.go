// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// connected returns a receiver whose pipelines drop all data, and a process. end waits until all results are forwarded.
func connected(b *testing.B) (env *environment, p *process.Process, end func()) {
	nop := consumertest.NewNop()
	bed := newBed(b, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	bed.Next = sharedreceiver.Signals{Traces: nop, Logs: nop, Metrics: nop}
	run := bed.open()
	env = bed.receiver.env
	return env, process.New(process.Settings{MaxMethods: env.config.Limits.MaxMethods, Counters: env.counters, Logger: env.Logger, Now: env.Now}), run.Finish
}

// BenchmarkRowsToMetrics counts the rows of a monitor's cycle and makes all metrics of them, as if they were collected
// after each cycle. The cost of a row does not depend on the number of rows. It includes a copy of the metrics.
func BenchmarkRowsToMetrics(b *testing.B) {
	for _, methods := range []int{500, createDefaultConfig().Limits.MaxMethods} {
		var copied pmetric.Metrics
		b.Run(fmt.Sprint(methods), func(b *testing.B) {
			env, p, end := connected(b)
			defer end()
			of := signals.Server{Tracer: "greys", Endpoint: env.config.Servers[0].Endpoint}
			origin := of.Origin(env.config.Resource(), session.Identity{PID: 4711, Version: "1.7.6.6", Protocol: string(ProtocolConsole)}, env.Now())
			collect := func() pmetric.Metrics {
				return env.metrics.metrics([]processState{{State: p.State(), Origin: origin}}, env.Now())
			}
			cycle := &javamethods.Statistics{}
			for i := range methods {
				cycle.Methods = append(cycle.Methods, row(1, fmt.Sprint("com.example.shop.Service", i/10), fmt.Sprint("operation", i%10), 20, 1, ms(1)))
			}
			points := 0
			cputime.Events(b, methods, func() {
				p.Received()
				p.Rows(process.Monitor{Number: 1, Cycle: time.Second}, cycle.Methods, false)
				points = collect().DataPointCount()
			})
			require.Greater(b, points, 7*methods, "seven of each method")
			copied = collect()
		})
		b.Run(fmt.Sprint(methods, "_copied"), func(b *testing.B) { cputime.CopyMetrics(b, methods, copied) })
	}
}
