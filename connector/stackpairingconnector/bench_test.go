// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// BenchmarkInterval is the time of an interval in which 100,000 call paths grew, with metrics and
// profiles. It includes nothing of the pairing.
func BenchmarkInterval(b *testing.B) {
	const callers, callees = 320, 312
	cfg := patient()
	c := newBench(b, cfg, outputs{metrics: newOutput(), profiles: newOutput()})
	functions := make([]*callevent.Function, callers)
	for i := range functions {
		name := fmt.Sprintf("org.example.project.module%d.Class%d.method%d", i%10, i%100, i)
		functions[i] = &callevent.Function{Qualified: name, Display: name}
	}
	first := uint64(0)
	program := func() (all []ptrace.Traces) {
		p := &program{id: callevent.StreamID{8: 1, 15: 1}, service: "shop"}
		add := func(kind callevent.Kind, f int) {
			p.events = append(p.events, event{kind: kind, sequence: first, time: int64(first), function: functions[f]})
			first++
		}
		for caller := range callers {
			add(callevent.KindEnter, caller)
			for callee := range callees {
				add(callevent.KindEnter, callee)
				add(callevent.KindExit, callee)
			}
			add(callevent.KindExit, caller)
		}
		return p.handOvers(b, delivery{packers: 1, batch: 20_000}, rand.New(rand.NewPCG(1, 1)))
	}
	var longest time.Duration
	for range b.N {
		b.StopTimer()
		for _, td := range program() {
			c.handOver(td)
		}
		b.StartTimer()
		began := time.Now()
		c.pairer.engine.TakeSums()
		longest = max(longest, time.Since(began))
		c.send()
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-take")
	c.shut()
}
