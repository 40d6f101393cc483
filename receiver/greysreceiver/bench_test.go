// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// connected returns a server whose pipelines drop all data. end waits until all its results are forwarded.
func connected(b *testing.B) (s *server, end func()) {
	nop := consumertest.NewNop()
	bed := newBed(b, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	bed.Next = sharedreceiver.Signals{Traces: nop, Logs: nop, Metrics: nop}
	run := bed.open()
	s = bed.receiver.servers[0]
	s.beginProcess(session.Identity{PID: 4711, Version: "1.7.6.6", Protocol: string(ProtocolConsole)})
	return s, run.Finish
}

// BenchmarkRowsToMetrics counts the rows of a monitor's cycle and makes all metrics of them, as if they were collected
// after each cycle. The cost of a row does not depend on the number of rows. It includes a copy of the metrics.
func BenchmarkRowsToMetrics(b *testing.B) {
	for _, methods := range []int{500, createDefaultConfig().Limits.MaxMethods} {
		var copied pmetric.Metrics
		b.Run(fmt.Sprint(methods), func(b *testing.B) {
			s, end := connected(b)
			defer end()
			cycle := &javamethods.Statistics{}
			for i := range methods {
				cycle.Methods = append(cycle.Methods, row(1, fmt.Sprint("com.example.shop.Service", i/10), fmt.Sprint("operation", i%10), 20, 1, ms(1)))
			}
			monitors, err := s.env.config.tasks()
			require.NoError(b, err)
			points := 0
			cputime.Events(b, methods, func() {
				s.output.process.Received()
				s.output.process.Rows(process.Monitor{Number: monitors[0].Number, Cycle: monitors[0].Cycle}, cycle.Methods, false)
				points = s.env.metrics.metrics([]processState{s.output.state(false)}, s.env.Now()).DataPointCount()
			})
			require.Greater(b, points, 7*methods, "seven of each method")
			copied = s.env.metrics.metrics([]processState{s.output.state(false)}, s.env.Now())
		})
		b.Run(fmt.Sprint(methods, "_copied"), func(b *testing.B) { cputime.CopyMetrics(b, methods, copied) })
	}
}
