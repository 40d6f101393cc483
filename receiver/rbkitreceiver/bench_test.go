// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// BenchmarkMessagesToPdata maps the messages of captures to pdata, each capture as one life of a
// server.
func BenchmarkMessagesToPdata(b *testing.B) {
	for _, name := range []string{"released-30s", "documented-30s"} {
		b.Run(name, func(b *testing.B) {
			c := openCapture(b, name)
			nop := consumertest.NewNop()
			bed, s := alone(b, func(b *bed, _ *Config) {
				b.Next = sharedreceiver.Signals{Traces: nop, Logs: nop, Metrics: nop, Profiles: nop}
			})
			env, hello := bed.receiver.out, rbkitserver.Hello(c)
			bytes, events := 0, 0
			for _, m := range c.Messages {
				bytes += len(m.Data)
				for _, n := range m.Events {
					events += n
				}
			}
			s.Begin(origin.Identity{State: &hello})
			cputime.Bytes(b, bytes, events, func() {
				for _, m := range c.Messages {
					s.Receive(zmtp.Message{m.Data})
				}
				env.metrics.metrics([]process.State{stateOf(s)}, env.Now())
			})
			env.Finish()
		})
	}
}

// BenchmarkReadMessages only reads all events of the same messages.
func BenchmarkReadMessages(b *testing.B) {
	for _, name := range []string{"released-30s", "documented-30s"} {
		b.Run(name, func(b *testing.B) {
			c := openCapture(b, name)
			var dialects []rbkit.Dialect
			bytes, events := 0, 0
			for _, m := range c.Messages {
				bytes += len(m.Data)
				for _, n := range m.Events {
					events += n
				}
				dialect, err := rbkit.DialectOf(m.Data)
				require.NoError(b, err)
				dialects = append(dialects, dialect)
			}
			var r rbkit.Reader
			cputime.Bytes(b, bytes, events, func() {
				for i, m := range c.Messages {
					require.NoError(b, r.Open(dialects[i], m.Data))
					for r.Next() {
						_ = r.Event()
					}
					require.NoError(b, r.Err())
				}
			})
		})
	}
}

// Sites are at their limit by default, and a fifth of that: each point costs the same.
func BenchmarkMetricsOfSites(b *testing.B) {
	for _, sites := range []int{1000, createDefaultConfig().Limits.MaxSites, 50_000} {
		b.Run(strconv.Itoa(sites), func(b *testing.B) {
			bed, s := alone(b, func(_ *bed, c *Config) { c.Limits.MaxSites, c.Limits.MaxMetricPoints = sites, 4*sites })
			s.Begin(origin.Identity{})
			files := make([]rbkit.FileAllocations, 1000)
			for i := range sites {
				f := &files[i%1000]
				f.File = strconv.AppendInt(nil, int64(i%1000), 10)
				f.Allocations = append(f.Allocations, rbkit.PlaceAllocations{Line: 1, Class: strconv.AppendInt(nil, int64(i/1000), 10), Count: 1, Size: 40})
			}
			s.Receive(zmtp.Message{numbered(b, rbkit.Documented, 0, func(c *rbkit.Collection) error { return c.Snapshot(1, nil, files) })})
			state := stateOf(s)
			require.Len(b, state.Sites, sites)
			points := 0
			b.ResetTimer()
			for b.Loop() {
				points += bed.receiver.out.metrics.metrics([]process.State{state}, recorded).DataPointCount()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
			s.End()
			bed.receiver.out.Finish()
		})
	}
}

// The largest message that was seen of a real server: 415,000 events.
func BenchmarkLargestMessage(b *testing.B) {
	const events = 415_000
	c := rbkit.NewCollection(rbkit.Released)
	for id := range uint64(events) {
		require.NoError(b, c.Created(1, 20*id, []byte("String")))
	}
	message := c.AppendTo(nil, 1, 0)
	_, s := alone(b, func(b *bed, _ *Config) { b.Next = sharedreceiver.Signals{Metrics: b.Metrics} })
	cputime.Bytes(b, len(message), events, func() {
		s.Begin(origin.Identity{})
		s.Receive(zmtp.Message{message})
	})
}
