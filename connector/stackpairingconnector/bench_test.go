// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package stackpairingconnector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// BenchmarkInterval is the processor time of an interval in which 100,000 call paths of 20,000 functions grew. That is
// as many functions as metrics have by default. It includes nothing of the pairing. A stream cannot be paired while the
// engine copies its sums.
func BenchmarkInterval(b *testing.B) {
	nop := newOutput()
	nop.answerMetrics = func(pmetric.Metrics) error { return nil }
	nop.answerProfiles = func(pprofile.Profiles) error { return nil }
	for _, bench := range []struct {
		name string
		to   outputs
	}{
		{"metrics", outputs{metrics: nop}},
		{"profiles", outputs{profiles: nop}},
	} {
		b.Run(bench.name, func(b *testing.B) { benchmarkInterval(b, bench.to) })
	}
}

func benchmarkInterval(b *testing.B, to outputs) {
	const callers, callees, different = 320, 312, 20_000
	c := newBench(b, patient(), to)
	functions := make([]*callevent.Function, different)
	for i := range functions {
		name := fmt.Sprintf("org.example.project.module%d.Class%d.method%d", i%10, i%100, i)
		functions[i] = &callevent.Function{Qualified: name, Display: name}
	}
	first := uint64(0)
	program := func() []ptrace.Traces {
		p := &program{id: callevent.StreamID{8: 1, 15: 1}, service: "shop"}
		add := func(kind callevent.Kind, f int) {
			p.events = append(p.events, event{kind: kind, sequence: first, time: int64(first), function: functions[f%different]})
			first++
		}
		for caller := range callers {
			add(callevent.KindEnter, caller)
			for callee := range callees {
				add(callevent.KindEnter, caller*callees+callee)
				add(callevent.KindExit, caller*callees+callee)
			}
			add(callevent.KindExit, caller)
		}
		return p.handOvers(b, delivery{packers: 1, batch: 20_000}, rand.New(rand.NewPCG(1, 1)))
	}
	var longest, all time.Duration
	for range b.N {
		for _, td := range program() {
			c.handOver(td)
		}
		all += cputime.Of(func() {
			longest = max(longest, cputime.OfCaller(func() { c.pairer.engine.PassSums() }))
			c.send()
		})
	}
	b.ReportMetric(all.Seconds()*1000/float64(b.N), "cpu-ms/interval")
	b.ReportMetric(longest.Seconds()*1000, "cpu-ms-blocked")
	c.shut()
}

// BenchmarkConsumeTraces pairs a captured Maven build of 887,366 events on one thread: by the
// processor, with all spans to a component that does nothing, and by the connector.
func BenchmarkConsumeTraces(b *testing.B) {
	program := capture(b, "maven")
	all := program.handOvers(b, delivery{packers: 1, batch: 10_000}, rand.New(rand.NewPCG(1, 1)))
	nop := consumertest.NewNop()
	onePercent := KeepConfig{Ratio: 0.01, DecideAfter: time.Minute}
	for _, bench := range []struct {
		name string
		pair func(*testing.B) consumer.Traces
	}{
		{"processor", func(b *testing.B) consumer.Traces {
			f := stackpairingprocessor.NewFactory()
			p, err := f.CreateTraces(b.Context(), processortest.NewNopSettings(f.Type()), f.CreateDefaultConfig(), nop)
			require.NoError(b, err)
			return p
		}},
		{"metrics", func(b *testing.B) consumer.Traces { return connected(b, patient(), nil, nop, nil) }},
		{"metrics_profiles", func(b *testing.B) consumer.Traces { return connected(b, patient(), nil, nop, nop) }},
		{"metrics_profiles_1_percent", func(b *testing.B) consumer.Traces {
			return connected(b, keeping(patient(), onePercent), nop, nop, nop)
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			cputime.Events(b, len(program.events), func() {
				c := bench.pair(b)
				for _, td := range all {
					require.NoError(b, c.ConsumeTraces(b.Context(), td))
				}
				require.NoError(b, c.(component.Component).Shutdown(b.Context()))
			})
		})
	}
}

// connected returns a started connector. An output without a consumer has no pipeline.
func connected(b *testing.B, cfg *Config, traces consumer.Traces, metrics consumer.Metrics, profiles xconsumer.Profiles) (first consumer.Traces) {
	f, set := NewFactory().(xconnector.Factory), connectortest.NewNopSettings(metadata.Type)
	var all []connector.Traces
	add := func(c connector.Traces, err error) {
		require.NoError(b, err)
		all = append(all, c)
	}
	if traces != nil {
		add(f.CreateTracesToTraces(b.Context(), set, cfg, traces))
	}
	if metrics != nil {
		add(f.CreateTracesToMetrics(b.Context(), set, cfg, metrics))
	}
	if profiles != nil {
		add(f.CreateTracesToProfiles(b.Context(), set, cfg, profiles))
	}
	for _, c := range all {
		require.NoError(b, c.Start(b.Context(), componenttest.NewNopHost()))
	}
	return all[0]
}
