// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// delivery is the delivered data of a stopped collector, except call events and values that vary: times, ports, IDs.
type delivery struct {
	resources, logs, metrics []string
}

// delivered returns the delivered data.
func (c *collector) delivered() delivery {
	c.t.Helper()
	var t delivery
	for _, traces := range c.sink.AllTraces() {
		t.resources = append(t.resources, inWords(traces.ResourceSpans().At(0).Resource().Attributes()))
	}
	for _, logs := range c.logs.AllLogs() {
		for _, rl := range logs.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					t.logs = append(t.logs, fmt.Sprintf("%s, %v, %q, %s, of %s", r.EventName(), r.SeverityNumber(), r.Body().AsString(), inWords(r.Attributes()), inWords(rl.Resource().Attributes())))
				}
			}
		}
	}
	last := map[string]string{}
	for _, metrics := range c.metrics.AllMetrics() {
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					inPoints(m, inWords(rm.Resource().Attributes()), last)
				}
			}
		}
	}
	for name, value := range last {
		t.metrics = append(t.metrics, name+" is "+value)
	}
	for _, all := range []*[]string{&t.resources, &t.logs, &t.metrics} {
		slices.Sort(*all)
	}
	t.resources = slices.Compact(t.resources)
	return t
}

// without removes texts with a prefix.
func (t delivery) without(begins []string) delivery {
	for _, all := range []*[]string{&t.resources, &t.logs, &t.metrics} {
		*all = slices.DeleteFunc(*all, func(line string) bool {
			return slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(line, begin) })
		})
	}
	return t
}

// inPoints stores the values of a metric in last.
func inPoints(m pmetric.Metric, resource string, last map[string]string) {
	points := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	}
	for _, p := range points.All() {
		last[fmt.Sprintf("%s%s of %s", m.Name(), inWords(p.Attributes()), resource)] = cmp.Or(fmt.Sprint(p.IntValue()), fmt.Sprint(p.DoubleValue()))
	}
}

// changing are the attributes that vary.
var changing = []string{"service.instance.id", "network.peer.port", "bytefrog.run.id"}

func inWords(attributes pcommon.Map) string {
	all := attributes.AsRaw()
	var words []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(changing, key) {
			all[key] = "…"
		}
		words = append(words, fmt.Sprintf("%s=%v", key, all[key]))
	}
	return "{" + strings.Join(words, ", ") + "}"
}

// The collector delivers the same for every message of an agent with and without a guard, for each kind of end.
func TestEveryMessageOfAnAgentIsForwarded(t *testing.T) {
	t.Parallel()
	for _, version := range []uint8{1, 2} {
		for name, end := range map[string]func(a *byHand, data *endings){
			"it shuts down": func(a *byHand, data *endings) {
				a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
				data.close()
			},
			"it reports an error": func(a *byHand, data *endings) {
				a.say(bytefrog.ErrorMessage{Text: "the agent's own"})
				data.close()
			},
			"it is killed": func(a *byHand, data *endings) {
				for _, conn := range data {
					write(a.t, conn, []byte{byte(bytefrog.TypeMethodEntry)})
				}
				data.close()
			},
		} {
			t.Run(fmt.Sprintf("%s, version %d", name, version), func(t *testing.T) {
				t.Parallel()
				change := func(c *bytefrogreceiver.Config) { c.Agent.DataConnections, c.NameWait = 2, 100*time.Millisecond }
				direct, behind := newCollector(t, testkit.Address(t), change), newCollector(t, testkit.Address(t), change)
				b := newBed(t, []string{behind.address})
				sayEverything(t, direct, direct.address, version, end)
				sayEverything(t, behind, b.address, version, end)
				// A cut run has a break at its end only if the receiver sees the end of a data connection first.
				chance := []string{"bytefrog.breaks"}
				want := direct.delivered().without(chance)
				assert.Equal(t, want, behind.delivered().without(chance))
				require.NotEmpty(t, want.logs)
				require.NotEmpty(t, want.metrics)
				first, second := direct.only().sinceItsBegin(), behind.only().sinceItsBegin()
				assert.Equal(t, first.events, second.events)
				assert.Equal(t, first.times, second.times)
				assert.Equal(t, first.renames, second.renames)
			})
		}
	}
}

// sayEverything sends every message of an agent to a collector, which is then stopped.
func sayEverything(t *testing.T, c *collector, address string, version uint8, end func(a *byHand, data *endings)) {
	a := speak(t, address, version)
	data := &endings{a.data(), a.data()}
	a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing})
	for _, result := range []bytefrog.MessageType{bytefrog.TypeClassTransformed, bytefrog.TypeClassIgnored, bytefrog.TypeClassTransformFailed} {
		a.say(bytefrog.ClassReport{Result: result, Class: "demo/M"})
	}
	rename := bytefrog.MapThreadName{Thread: 3, Time: 7, Name: "renamed"}.AppendTo(nil)
	for i, b := range [][]byte{everything(0, 1), everything(5, 5), append(rename, everything(10, 9)...)} {
		write(t, data[i%len(data)], b)
		require.True(t, testkit.Happens(func() bool { return c.number() == (i+1)*inEverything }))
	}
	end(a, data)
	_ = a.control.Close()
	c.awaitEnds(1)
	c.stop()
}

// endings are data connections that end.
type endings [2]*net.TCPConn

func (e *endings) close() {
	for _, conn := range e {
		_ = conn.Close()
	}
}

// sinceItsBegin returns the run with times relative to its first event.
func (r *run) sinceItsBegin() *run {
	begin := r.times[0]
	for number := range r.times {
		r.times[number] -= begin
	}
	for i := range r.renames {
		r.renames[i].Time -= begin
	}
	return r
}
