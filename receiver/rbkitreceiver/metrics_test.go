// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// metricsOf are the metrics of a state by their names.
func metricsOf(t testing.TB, state process.State, options ...option) map[string]pmetric.Metric {
	t.Helper()
	b, _ := alone(t, options...)
	defer b.receiver.out.Finish()
	made := b.receiver.out.metrics.metrics([]process.State{state}, recorded.Add(time.Hour))
	all := map[string]pmetric.Metric{}
	for _, resource := range made.ResourceMetrics().All() {
		assert.Equal(t, state.Origin.Resource.Attributes().AsRaw(), resource.Resource().Attributes().AsRaw())
		scope := resource.ScopeMetrics().At(0)
		assert.Equal(t, metadata.ScopeName, scope.Scope().Name())
		assert.Equal(t, "v1.2.3", scope.Scope().Version())
		assert.NotEmpty(t, resource.SchemaUrl())
		for _, m := range scope.Metrics().All() {
			_, twice := all[m.Name()]
			require.False(t, twice, m.Name())
			all[m.Name()] = m
		}
	}
	return all
}

// someState is a state in which everything is known.
func someState() process.State {
	s := process.State{
		Origin:  originOf(createDefaultConfig(), &ServerConfig{Publish: "localhost:5555"}, "", origin.Identity{State: &released, Local: &origin.LocalProcess{Host: "here", Started: recorded.Add(-time.Hour)}}, recorded, 1),
		Traffic: process.Traffic{Messages: 1, Bytes: 2, Events: 3, Lost: 4}, Samples: 5,
		Stats:   process.Stats{"something_new": 6, "something_else": 7},
		Classes: []string{"A", "B", "C"}, Files: []string{"a.rb", "b.rb"},
		Created: heap.Counts{1, 2, 0}, Destroyed: heap.Counts{3, 4, 5}, Tracked: 6,
		Live:  heap.LiveCounts{Objects: heap.Counts{7, 8}, Bytes: heap.Counts{9, 10}},
		Sites: map[heap.Site]heap.Allocated{{Class: 0, File: 0}: {Objects: 1, Bytes: 40}, {Class: 0, File: 1}: {Objects: 2, Bytes: 80}, {Class: 1, File: 0}: {Objects: 4, Bytes: 160}},
	}
	for key := range statMetrics {
		s.Stats[key] = 42
	}
	s.Marking.Observe(time.Millisecond)
	s.Whole.Observe(time.Second)
	return s
}

// valuesOf are the values of a metric's points by their attributes.
func valuesOf(m pmetric.Metric) map[string]int64 {
	points := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	}
	values := map[string]int64{}
	for _, p := range points.All() {
		value := p.IntValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeDouble {
			value = int64(math.Round(p.DoubleValue() * 1000)) // of seconds
		}
		values[fmt.Sprint(p.Attributes().AsRaw())] = value
	}
	return values
}

// unmeasured is an option: statistics without a metric are delivered under their keys.
func unmeasured(_ *bed, c *Config) { c.Metrics.RubyGcStat.Enabled = true }

func TestEveryClassAndSiteHasItsPoint(t *testing.T) {
	all := metricsOf(t, someState(), unmeasured)
	for name, want := range map[string]map[string]int64{
		"ruby.object.created":    {"map[ruby.class:A]": 1, "map[ruby.class:B]": 2},
		"ruby.object.destroyed":  {"map[ruby.class:A]": 3, "map[ruby.class:B]": 4, "map[ruby.class:C]": 5},
		"ruby.heap.live_objects": {"map[ruby.class:A]": 7, "map[ruby.class:B]": 8},
		"ruby.heap.live_size":    {"map[ruby.class:A]": 9, "map[ruby.class:B]": 10},
		"ruby.gc.stat":           {"map[ruby.gc.stat.key:something_new]": 6, "map[ruby.gc.stat.key:something_else]": 7},
		"ruby.allocation.count": {"map[code.file.path:a.rb ruby.class:A]": 1, "map[code.file.path:b.rb ruby.class:A]": 2,
			"map[code.file.path:a.rb ruby.class:B]": 4},
		"ruby.allocation.size": {"map[code.file.path:a.rb ruby.class:A]": 40, "map[code.file.path:b.rb ruby.class:A]": 80,
			"map[code.file.path:a.rb ruby.class:B]": 160},
	} {
		assert.Equal(t, want, valuesOf(all[name]), name)
	}
}

// The generated builder looks through all points of a metric for each.
func TestTheBuilderHasOnePointOfEachMetric(t *testing.T) {
	s := someState()
	for i := range int32(1000) {
		s.Classes = append(s.Classes, fmt.Sprint(i))
		s.Sites[heap.Site{Class: 3 + i}] = heap.Allocated{Objects: 1, Bytes: 1}
		s.Stats[fmt.Sprint(i)] = 1
		for _, c := range []*heap.Counts{&s.Created, &s.Destroyed, &s.Live.Objects, &s.Live.Bytes} {
			*c = append(*c, 1)
		}
	}
	b, _ := alone(t)
	defer b.receiver.out.Finish()
	m := b.receiver.out.metrics
	m.recordStats(&s, 1)
	m.recordObserved(&s, 1)
	made := m.builder.Emit()
	assert.Equal(t, made.MetricCount(), made.DataPointCount())
	assert.Len(t, valuesOf(metricsOf(t, s)["ruby.allocation.count"]), 1003)
}

func TestPointsAreOfTheAttributesThatAreWanted(t *testing.T) {
	for strategy, want := range map[string]map[string]int64{
		metadata.AggregationStrategySum: {"map[ruby.class:A]": 3, "map[ruby.class:B]": 4},
		metadata.AggregationStrategyAvg: {"map[ruby.class:A]": 1, "map[ruby.class:B]": 4},
		metadata.AggregationStrategyMin: {"map[ruby.class:A]": 1, "map[ruby.class:B]": 4},
		metadata.AggregationStrategyMax: {"map[ruby.class:A]": 2, "map[ruby.class:B]": 4},
	} {
		all := metricsOf(t, someState(), func(_ *bed, c *Config) {
			count := &c.Metrics.RubyAllocationCount
			count.AggregationStrategy = strategy
			count.EnabledAttributes = []metadata.RubyAllocationCountMetricAttributeKey{metadata.RubyAllocationCountMetricAttributeKeyRubyClass}
		})
		assert.Equal(t, want, valuesOf(all["ruby.allocation.count"]), strategy)
		assert.Len(t, valuesOf(all["ruby.allocation.size"]), 3, "the other one has all")
	}
	none := metricsOf(t, someState(), func(_ *bed, c *Config) {
		c.Metrics.RubyObjectCreated.EnabledAttributes = nil
		c.Metrics.RubyObjectDestroyed.Enabled = false
	})
	assert.Equal(t, map[string]int64{"map[]": 3}, valuesOf(none["ruby.object.created"]))
	assert.NotContains(t, none, "ruby.object.destroyed")
}

func TestSumsBeginWithTheProcessOrItsFirstMessage(t *testing.T) {
	s := someState()
	all := metricsOf(t, s)
	started, begun := pcommon.NewTimestampFromTime(s.Origin.Started), pcommon.NewTimestampFromTime(s.Origin.Begun)
	require.NotEqual(t, started, begun)
	for name, m := range all {
		want := begun
		if _, of := statMetrics[name[min(len("ruby.gc."), len(name)):]]; of || name == "ruby.gc.stat" {
			want = started
		}
		switch m.Type() {
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				assert.Equal(t, want, p.StartTimestamp(), name)
				assert.Equal(t, recorded.Add(time.Hour), p.Timestamp().AsTime(), name)
			}
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				assert.Equal(t, recorded.Add(time.Hour), p.Timestamp().AsTime(), name)
			}
		case pmetric.MetricTypeHistogram:
			assert.Equal(t, begun, m.Histogram().DataPoints().At(0).StartTimestamp(), name)
		}
	}
}

func TestAnEndedProcessHasNoCurrentValues(t *testing.T) {
	s := someState()
	living := metricsOf(t, s)
	s.Ended = true
	over := metricsOf(t, s)
	for name, m := range living {
		_, known := over[name]
		assert.Equal(t, m.Type() != pmetric.MetricTypeGauge, known, name)
	}
	assert.Contains(t, over, "ruby.gc.count")
	assert.NotContains(t, over, "ruby.gc.heap_live_slots")
	assert.Contains(t, over, metricMarkDuration)
}

// switchOff is an option: no metric of the generated ones.
func switchOff(_ *bed, c *Config) {
	all := reflect.ValueOf(&c.Metrics).Elem()
	for i := range all.NumField() {
		all.Field(i).FieldByName("Enabled").SetBool(false)
	}
}

func TestHistogramsAreSwitchedByThemselves(t *testing.T) {
	names := func(options ...option) (names []string) {
		for name := range metricsOf(t, someState(), options...) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	noMark := func(_ *bed, c *Config) { c.Histograms.MarkDuration.Enabled = false }
	noCycle := func(_ *bed, c *Config) { c.Histograms.CycleDuration.Enabled = false }
	assert.Equal(t, []string{metricCycleDuration, metricMarkDuration}, names(switchOff))
	assert.Equal(t, []string{metricCycleDuration}, names(switchOff, noMark))
	assert.Equal(t, []string{metricMarkDuration}, names(switchOff, noCycle))
	assert.Empty(t, names(switchOff, noMark, noCycle))
	assert.Equal(t, []string{"ruby.gc.count", metricCycleDuration}, names(switchOff, noMark, func(_ *bed, c *Config) { c.Metrics.RubyGcCount.Enabled = true }))
}

// Every metric of statistics has its own key.
func TestEveryStatisticHasItsMetric(t *testing.T) {
	for key := range statMetrics {
		s := process.State{Origin: someState().Origin, Stats: process.Stats{key: 42}}
		all := metricsOf(t, s)
		require.Contains(t, all, "ruby.gc."+key)
		assert.Equal(t, map[string]int64{"map[]": 42}, valuesOf(all["ruby.gc."+key]), key)
		assert.NotContains(t, all, "ruby.gc.stat", key)
	}
	for former, present := range process.FormerKeys {
		assert.Contains(t, statMetrics, present, former)
		assert.NotContains(t, statMetrics, former)
	}
}

func TestSumsBelowZeroAreLeftOut(t *testing.T) {
	all := metricsOf(t, process.State{Origin: someState().Origin, Stats: process.Stats{"count": -1, "heap_live_slots": -2, "something_new": -3, "time": -4}}, unmeasured)
	assert.NotContains(t, all, "ruby.gc.time")
	assert.NotContains(t, all, "ruby.gc.count")
	assert.Equal(t, map[string]int64{"map[]": -2}, valuesOf(all["ruby.gc.heap_live_slots"]))
	assert.Equal(t, map[string]int64{"map[ruby.gc.stat.key:something_new]": -3}, valuesOf(all["ruby.gc.stat"]))
}

// A gap of nearly all numbers is wrong, so it counts as the largest possible loss.
func TestAGapHasAsManyMessagesAsAServerCanSend(t *testing.T) {
	b, s := alone(t)
	s.Begin(origin.Identity{})
	receive := func(number uint64) {
		s.Receive(zmtp.Message{rbkit.NewCollection(rbkit.Released).AppendTo(nil, 1, number)})
	}
	for range 4 {
		receive(0)
		receive(math.MaxUint64 - 1)
	}
	assert.Equal(t, int64(1<<32), stateOf(s).Lost)
	assert.EqualValues(t, 4*int64(1<<32), b.Counter("messages_lost"))
	receive(math.MaxUint64)
	assert.Equal(t, int64(1<<32), stateOf(s).Lost)
	s.End()
	b.receiver.out.Finish()
}

// eventsOf are the values of rbkit.events in each collection.
func (b *bed) eventsOf() (collections [][]int64) {
	for _, metrics := range b.Metrics.AllMetrics() {
		var values []int64
		for _, resource := range metrics.ResourceMetrics().All() {
			for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == "rbkit.events" {
					values = append(values, m.Sum().DataPoints().At(0).IntValue())
				}
			}
		}
		collections = append(collections, values)
	}
	return collections
}

// rarely is an option: metrics are collected at the end alone.
func rarely(_ *bed, c *Config) { c.CollectionInterval = 24 * time.Hour }

func TestAProcessThatConnectsAgainHasOneValue(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), rarely)
	for i := range uint64(3) {
		server.awaitSubscriber()
		server.publishNumbered(i, func(c *rbkit.Collection) error { return c.Created(1, 20, []byte("A")) })
		b.Await("an object", func() bool { return b.Counter("events") == int64(i+1) })
		server.restart(rbkitserver.Options{Hello: released})
		b.Await("the loss", func() bool { return len(b.Records(eventGone)) == int(i+1) })
	}
	b.Shutdown()
	assert.Zero(t, b.Counter("restarts"))
	assert.Equal(t, [][]int64{{3}}, b.eventsOf())
}

func TestTheLastMetricsOfAProcessAreDeliveredOnce(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), rarely)
	server.awaitSubscriber()
	server.publishObject(20, "A")
	b.Await("an object", func() bool { return b.Counter("events") == 1 })
	living := b.receiver.living()
	require.Len(t, living, 1)
	assert.False(t, living[0].Ended)
	server.stop()
	b.Await("the loss", func() bool { return len(b.Records(eventGone)) == 1 })
	gone := b.receiver.living()
	require.Len(t, gone, 1)
	assert.True(t, gone[0].Ended)
	assert.EqualValues(t, 1, gone[0].Events)
	assert.Empty(t, b.receiver.living())
	b.Shutdown()
	assert.Empty(t, b.Metrics.AllMetrics())
}

// A process that has ended has no later values.
func TestTheLastMetricsOfAProcessAreSentAgainAfterARefusal(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), func(_ *bed, c *Config) { c.CollectionInterval = 100 * time.Millisecond })
	server.awaitSubscriber()
	b.Metrics.RefuseWith(receivertestbed.ErrRefused)
	server.publishObject(20, "A")
	b.Await("an object", func() bool { return b.Counter("events") == 1 })
	server.stop()
	b.Await("the loss", func() bool { return len(b.Records(eventGone)) == 1 })
	before := b.Counter("metric_points_dropped")
	b.Await("the refusal of the last metrics", func() bool { return b.Counter("metric_points_dropped") > before })
	b.Metrics.RefuseWith(nil)
	b.Await("the last metrics", func() bool {
		collections := b.eventsOf()
		return len(collections) > 0 && slices.Contains(collections[len(collections)-1], 1)
	})
}

func TestEveryLifeOfAServerHasItsLastMetrics(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), rarely)
	one := func(c *rbkit.Collection) error { return c.Created(1, 20, []byte("A")) }
	server.awaitSubscriber()
	server.publishNumbered(7, one)
	b.Await("an object", func() bool { return b.Counter("events") == 1 })
	server.publishNumbered(0, one) // another life that is connected
	b.Await("another life", func() bool { return b.Counter("events") == 2 })
	again := released
	again.PID++
	server.restart(rbkitserver.Options{Hello: again})
	server.awaitSubscriber()
	server.publishNumbered(8, one) // and one that was not
	b.Await("the last life", func() bool { return b.Counter("events") == 3 })
	b.Shutdown()
	assert.EqualValues(t, 2, b.Counter("restarts"))
	assert.Equal(t, [][]int64{{1, 1, 1}}, b.eventsOf())
}

func TestDurationsOfStatisticsAreSeconds(t *testing.T) {
	for _, key := range []string{"time", "marking_time", "sweeping_time"} {
		m := metricsOf(t, process.State{Origin: someState().Origin, Stats: process.Stats{key: 1234}})["ruby.gc."+key]
		assert.Equal(t, "s", m.Unit(), key)
		assert.InDelta(t, 1.234, m.Sum().DataPoints().At(0).DoubleValue(), 1e-9, key)
	}
}

func TestStatisticsWithoutAMetricAreLoggedOnce(t *testing.T) {
	const said = "The server sends statistics that have no metric. To receive them under their keys, set metrics.ruby.gc.stat.enabled to true"
	stats := func(c *rbkit.Collection) error {
		return c.Stats(1, []rbkit.Stat{{Name: "count", Value: 1}, {Name: "new_b", Value: 2}, {Name: "new_a", Value: 3}})
	}
	for name, c := range map[string]struct {
		options []option
		want    int
	}{"by default": {nil, 1}, "under their keys": {[]option{unmeasured}, 0}} {
		t.Run(name, func(t *testing.T) {
			b, s := alone(t, c.options...)
			s.Begin(origin.Identity{})
			s.Receive(zmtp.Message{numbered(t, rbkit.Released, 0, stats)})
			s.Receive(zmtp.Message{numbered(t, rbkit.Released, 1, stats)})
			b.finish(s)
			lines := b.Log.FilterMessage(said).All()
			require.Len(t, lines, c.want)
			for _, line := range lines {
				assert.Equal(t, []any{"new_a", "new_b"}, line.ContextMap()["keys"])
			}
		})
	}
}
