// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// metricsOf is a message of one service.
func metricsOf(service string, fills ...func(pmetric.Metric)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", service)
	sm := rm.ScopeMetrics().AppendEmpty()
	for _, fill := range fills {
		fill(sm.Metrics().AppendEmpty())
	}
	return md
}

// point has the methods that points of all kinds have.
type point interface {
	SetTimestamp(pcommon.Timestamp)
	Attributes() pcommon.Map
}

func at(p point, time pcommon.Timestamp, attributes ...string) {
	p.SetTimestamp(time)
	for i := 0; i < len(attributes); i += 2 {
		p.Attributes().PutStr(attributes[i], attributes[i+1])
	}
}

// values are those of all counters, as texts.
func values(t testing.TB, path string) (all []string) {
	t.Helper()
	for _, read := range readAll(t, path) {
		for _, v := range read.Values {
			all = append(all, fmt.Sprintf("%s: %s [%s] %d: %g", v.Track.Process.Name, v.Track.Name, v.Track.Counter.Unit, v.Time, v.Value))
		}
	}
	slices.Sort(all)
	return all
}

func TestMetricsAreCountersOfTheirProcess(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow)
	require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20))))
	require.NoError(t, b.consumeMetrics(t.Context(), metricsOf("shop",
		func(m pmetric.Metric) {
			m.SetName("jvm.memory.used")
			m.SetUnit("By")
			m.SetDescription("Used memory.")
			points := m.SetEmptyGauge().DataPoints()
			for n, pool := range []string{"old", "new"} {
				p := points.AppendEmpty()
				at(p, pcommon.Timestamp(15+n), "pool", pool, "area", "heap")
				p.SetDoubleValue(1.5)
			}
		},
		func(m pmetric.Metric) {
			m.SetName("requests")
			m.SetUnit("{request}")
			points := m.SetEmptySum().DataPoints()
			for n := range 3 {
				p := points.AppendEmpty()
				at(p, pcommon.Timestamp(30-10*n))
				p.SetIntValue(-int64(n))
			}
			none := points.AppendEmpty()
			at(none, 40)
			none.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			points.AppendEmpty().SetIntValue(7) // without a time
		},
		func(m pmetric.Metric) {
			m.SetName("duration")
			m.SetUnit("s")
			p := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			at(p, 12)
			p.SetCount(3)
			p.SetSum(0.25)
		},
		func(m pmetric.Metric) {
			m.SetName("size")
			p := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			at(p, 13)
			p.SetCount(4)
		},
		func(m pmetric.Metric) {
			m.SetName("pause")
			m.SetUnit("ns")
			p := m.SetEmptySummary().DataPoints().AppendEmpty()
			at(p, 14)
			p.SetCount(5)
			p.SetSum(100)
		},
	)))
	require.NoError(t, b.signal.Shutdown(t.Context()))
	assert.Equal(t, []string{
		"shop: duration count [] 12: 3",
		"shop: duration sum [s] 12: 0.25",
		"shop: jvm.memory.used {area=heap, pool=new} [bytes] 16: 1.5",
		"shop: jvm.memory.used {area=heap, pool=old} [bytes] 15: 1.5",
		"shop: pause count [] 14: 5",
		"shop: pause sum [ns] 14: 100",
		"shop: requests [{request}] 10: -2",
		"shop: requests [{request}] 20: -1",
		"shop: requests [{request}] 30: 0",
		"shop: size count [] 13: 4",
	}, values(t, path))
	read := readAll(t, path)[0]
	for _, track := range read.Tracks {
		if track.Counter != nil && track.Counter.Unit == "bytes" {
			assert.Equal(t, "Used memory.", track.Description)
		}
		assert.Same(t, read.Slices[0].Track.Process, track.Process, "the process of the spans")
	}
	assert.EqualValues(t, 10, b.counts(t)["values"])
	assert.EqualValues(t, 1, b.counts(t)["invalid_times"])
}

func TestValuesOfFurtherCountersAreCounted(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow, func(c *Config) { c.MaxCounters, c.MaxTracks = 3, 10 })
	gauges := func(m pmetric.Metric) {
		m.SetName("g")
		points := m.SetEmptyGauge().DataPoints()
		for n := range 20 {
			p := points.AppendEmpty()
			at(p, pcommon.Timestamp(n+1), "n", fmt.Sprint(n))
			p.SetIntValue(int64(n))
		}
	}
	for range 2 {
		require.NoError(t, b.consumeMetrics(t.Context(), metricsOf("shop", gauges)))
	}
	require.NoError(t, b.signal.Shutdown(t.Context()))
	counts := b.counts(t)
	assert.Len(t, values(t, path), 6)
	assert.EqualValues(t, 34, counts["dropped_values{reason=max_counters}"], "%v", counts)
	assert.Equal(t, []string{"Dropped values of metrics"}, b.lines(), "it is logged once")
	assert.Len(t, files(t, path), 1, "counters are no tracks that begin a new file")
}
