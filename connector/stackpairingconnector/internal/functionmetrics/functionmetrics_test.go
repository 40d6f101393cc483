// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package functionmetrics

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/origin"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/heapsize"
)

// update writes the golden file again: go test -run Golden -update. testdata/README.md explains it.
var update = flag.Bool("update", false, "write the golden file again")

const (
	unbounded = 1 << 30
	second    = pcommon.Timestamp(time.Second)
	start     = 1_700_000_000 * second
)

// originOf returns the origin of a service. The order of its attributes is random.
func originOf(service string) *origin.Origin {
	r, scope := pcommon.NewResource(), pcommon.NewInstrumentationScope()
	attributes := [][2]string{{"service.name", service}, {"service.instance.id", "1"}, {"process.runtime.name", "jvm"}}
	rand.Shuffle(len(attributes), func(i, j int) { attributes[i], attributes[j] = attributes[j], attributes[i] })
	for _, a := range attributes {
		r.Attributes().PutStr(a[0], a[1])
	}
	scope.SetName("callbraid")
	return origin.New(r, schema.URL, scope, schema.URL)
}

// ended are calls of a function that ended in one way.
type ended struct {
	function  string
	failed    bool
	errorType string
	durations []int64
}

// incrementOf returns the increment of calls. Histograms have different scales.
func incrementOf(all ...ended) *callsum.Increment {
	i := &callsum.Increment{Exceptions: []string{""}}
	for n, e := range all {
		sum := callsum.FunctionSum{Function: uint32(n), Failed: e.failed, Calls: uint64(len(e.durations))}
		i.Functions = append(i.Functions, &callevent.Function{Qualified: e.function})
		if e.errorType != "" {
			sum.Exception = uint32(len(i.Exceptions))
			i.Exceptions = append(i.Exceptions, e.errorType)
		}
		for _, d := range e.durations {
			sum.Sum += d
		}
		sum.Histogram = histogramOf(int32(4-len(e.durations)%3), e.durations)
		i.ByFunction = append(i.ByFunction, sum)
	}
	return i
}

// bucketOf returns the bucket of a duration.
func bucketOf(scale int32, ns int64) int32 {
	return int32(math.Ceil(math.Log2(float64(ns)/1e9)*math.Exp2(float64(scale)))) - 1
}

// histogramOf returns a histogram with the largest scale up to a limit that has at most 160 buckets.
func histogramOf(scale int32, durations []int64) callsum.Histogram {
	least, most := slices.Min(durations), slices.Max(durations)
	for bucketOf(scale, most)-bucketOf(scale, least) >= 160 {
		scale--
	}
	h := callsum.Histogram{Scale: scale, Offset: bucketOf(scale, least)}
	h.Counts = make([]uint64, bucketOf(scale, most)-h.Offset+1)
	for _, d := range durations {
		h.Counts[bucketOf(scale, d)-h.Offset]++
	}
	return h
}

// model has the durations of all calls by point.
type model map[string][]int64

// add adds calls to the points that have them when there is no bound.
func (m model) add(service string, e ended) {
	errorType := e.errorType
	if e.failed {
		if errorType == "" {
			errorType = "_OTHER"
		}
		m.addTo(service, "code.function.errors", e.function, errorType, e)
	}
	m.addTo(service, "code.function.calls", e.function, "", e)
	m.addTo(service, "code.function.duration", e.function, errorType, e)
}

func (m model) addTo(service, metric, function, errorType string, e ended) {
	key := pointOf(service, metric, function, errorType)
	m[key] = append(m[key], e.durations...)
}

func pointOf(service, metric, function, errorType string) string {
	return fmt.Sprintf("%s %s %q %q", service, metric, function, errorType)
}

// point is what a point of the metrics has.
type point struct {
	start, time pcommon.Timestamp
	stale       bool
	count       uint64
	sum         float64
	scale       int32
	offset      int32
	counts      []uint64
	exemplars   string
}

// answered returns the points of an interval that the next component accepts.
func answered(m *Metrics, now pcommon.Timestamp, x *Exemplars) pmetric.Metrics {
	metrics := m.Interval(at(now), x)
	m.Answered(at(now).Elapsed)
	return metrics
}

// at is the moment of a time, if the system's clock is never set.
func at(now pcommon.Timestamp) Moment { return Moment{now, time.Duration(now)} }

// overflow is the function in the name of points without room.
const overflow = "(overflow)"

const lonely = "the exporter prometheus reads only the first point without a value of a metric"

// pointsOf reads metrics, and checks their definitions.
func pointsOf(t testing.TB, metrics pmetric.Metrics) map[string]point {
	t.Helper()
	all := map[string]point{}
	exemplarsOf := func(all pmetric.ExemplarSlice) (exemplars string) {
		for _, e := range all.All() {
			value := e.DoubleValue() + float64(e.IntValue())
			exemplars += fmt.Sprintf("%d/%d %v at %d;", e.TraceID()[15], e.SpanID()[7], value, e.Timestamp()/second)
		}
		return exemplars
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		service := ""
		if v, ok := rm.Resource().Attributes().Get("service.name"); ok {
			service = v.Str()
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			add := func(attributes pcommon.Map, p point) {
				name := overflow
				if function, ok := attributes.Get("code.function.name"); ok {
					name = function.Str()
				} else {
					require.Equal(t, map[string]any{"otel.metric.overflow": true}, attributes.AsRaw())
				}
				errorType := ""
				if v, ok := attributes.Get("error.type"); ok {
					errorType = v.Str()
				}
				key := pointOf(service, m.Name(), name, errorType)
				require.NotContains(t, all, key, "each point is there once")
				require.LessOrEqual(t, p.start, p.time)
				all[key] = p
			}
			switch m.Type() {
			case pmetric.MetricTypeSum:
				require.True(t, m.Sum().IsMonotonic())
				require.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
				for _, p := range m.Sum().DataPoints().All() {
					require.True(t, !p.Flags().NoRecordedValue() || m.Sum().DataPoints().Len() == 1, lonely)
					add(p.Attributes(), point{
						start: p.StartTimestamp(), time: p.Timestamp(), stale: p.Flags().NoRecordedValue(), count: uint64(p.IntValue()),
						exemplars: exemplarsOf(p.Exemplars()),
					})
				}
			case pmetric.MetricTypeExponentialHistogram:
				require.Equal(t, pmetric.AggregationTemporalityCumulative, m.ExponentialHistogram().AggregationTemporality())
				for _, p := range m.ExponentialHistogram().DataPoints().All() {
					require.True(t, !p.Flags().NoRecordedValue() || m.ExponentialHistogram().DataPoints().Len() == 1, lonely)
					add(p.Attributes(), point{
						start: p.StartTimestamp(), time: p.Timestamp(), stale: p.Flags().NoRecordedValue(), count: p.Count(), sum: p.Sum(),
						scale: p.Scale(), offset: p.Positive().Offset(), counts: p.Positive().BucketCounts().AsRaw(), exemplars: exemplarsOf(p.Exemplars()),
					})
				}
			default:
				require.Fail(t, "another type", m.Name())
			}
		}
	}
	return all
}

// requireModel checks the values of all points.
func requireModel(t testing.TB, want model, got map[string]point) {
	t.Helper()
	require.ElementsMatch(t, keysOf(want), keysOf(got))
	for key, durations := range want {
		p := got[key]
		require.False(t, p.stale, key)
		require.EqualValues(t, len(durations), p.count, key)
		if !strings.Contains(key, "code.function.duration") {
			continue
		}
		sum := 0.0
		buckets := map[int32]uint64{}
		for _, d := range durations {
			sum += float64(d) / 1e9
			buckets[bucketOf(p.scale, d)]++
		}
		require.InEpsilon(t, sum, p.sum, 1e-9, key)
		for i, n := range p.counts {
			require.Equal(t, buckets[p.offset+int32(i)], n, key)
			delete(buckets, p.offset+int32(i))
		}
		require.Empty(t, buckets, key)
		require.LessOrEqual(t, len(p.counts), 160)
	}
}

func keysOf[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

var functionNames = []string{"a.B.c", "a.B.d", "", "ünï", "\"quoted\"\n", "x\x00", "f"}

// randomEnded returns calls of a few functions.
func randomEnded(random *rand.Rand) ended {
	e := ended{function: functionNames[random.IntN(len(functionNames))]}
	if random.IntN(3) == 0 {
		e.failed = true
		e.errorType = []string{"", "_OTHER", "java.lang.Error", "é"}[random.IntN(4)]
	}
	for range 1 + random.IntN(5) {
		e.durations = append(e.durations, 1+random.Int64N(1<<(1+random.IntN(50))))
	}
	return e
}

func TestMetricsHaveTheSumsOfASlowModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		type life struct {
			*Stream
			service string
		}
		m, want, now := New(Settings{MaxFunctions: unbounded}), model{}, start
		open, final := []life{}, map[string]bool{}
		for range 40 {
			switch n := random.IntN(10); {
			case n < 2 || len(open) == 0:
				service := fmt.Sprint("service", random.IntN(4))
				open = append(open, life{m.Open(originOf(service), now), service})
				final[service] = false
			case n < 7:
				l, e := open[random.IntN(len(open))], randomEnded(random)
				l.Add(incrementOf(e))
				want.add(l.service, e)
			case n < 8:
				i := random.IntN(len(open))
				open[i].End()
				open = slices.Delete(open, i, i+1)
			default:
				now += 60 * second
				got := pointsOf(t, answered(m, now, NewExemplars(m.settings)))
				for key, p := range got {
					service, _, _ := strings.Cut(key, " ")
					if final[service] {
						require.True(t, p.stale, key)
						require.Zero(t, p.count+uint64(len(p.counts)), key)
						require.Contains(t, want, key)
						delete(want, key)
						delete(got, key)
					}
				}
				requireModel(t, want, got)
				for i := range 4 {
					service := fmt.Sprint("service", i)
					final[service] = !slices.ContainsFunc(open, func(l life) bool { return l.service == service })
				}
			}
		}
		for _, l := range open {
			l.End()
		}
		answered(m, now+second, NewExemplars(m.settings))
		answered(m, now+2*second, NewExemplars(m.settings))
		require.Zero(t, answered(m, now+3*second, NewExemplars(m.settings)).DataPointCount())
		require.Zero(t, m.Bytes(), "seed %d: the memory of forgotten series", seed)
		require.Zero(t, m.functions)
		require.Empty(t, m.byKey)
	}
}

// Sums of each metric and service stay exact, and the series are bounded.
func TestFunctionsWithoutRoomAreSummedTogether(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		most := 3 + random.IntN(10)
		folded := 0
		m, want := New(Settings{MaxFunctions: most, Folded: func(functions, names, bytes uint64) {
			require.Zero(t, names+bytes)
			folded += int(functions)
		}}), map[string]int{}
		var streams []*Stream
		for i := range 3 {
			streams = append(streams, m.Open(originOf(fmt.Sprint("service", i)), start))
		}
		for range 50 {
			i, e := random.IntN(3), randomEnded(random)
			streams[i].Add(incrementOf(e))
			want[fmt.Sprintf("service%d code.function.calls", i)] += len(e.durations)
			want[fmt.Sprintf("service%d code.function.duration", i)] += len(e.durations)
			if e.failed {
				want[fmt.Sprintf("service%d code.function.errors", i)] += len(e.durations)
			}
		}
		got, named, unnamed := map[string]int{}, 0, 0
		for key, p := range pointsOf(t, answered(m, start+second, NewExemplars(m.settings))) {
			metric, attributes, _ := strings.Cut(key, ` "`)
			got[metric] += int(p.count)
			if strings.Contains(key, "code.function.duration") && strings.Contains(attributes, overflow) {
				unnamed += int(p.count)
			}
			if !strings.Contains(attributes, overflow) && !strings.Contains(metric, "duration") {
				named++
			}
			buckets := uint64(0)
			for _, n := range p.counts {
				buckets += n
			}
			if strings.Contains(key, "duration") {
				require.Equal(t, p.count, buckets, key)
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, unnamed, folded, "seed %d", seed)
		require.LessOrEqual(t, named, most, "functions, and error types of functions")
		require.LessOrEqual(t, m.functions, most)
	}
}

// A program has at most half of what all others leave, so there is always room for another one.
func TestAProgramLeavesRoomForOthers(t *testing.T) {
	for name, settings := range map[string]Settings{
		"functions": {MaxFunctions: 64},
		"bytes":     {MaxFunctions: unbounded, MaxBytes: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(settings)
			for i, s := range []*Stream{m.Open(originOf("large"), start), m.Open(originOf("large"), start), m.Open(originOf("small"), start)} {
				for n := range []int{1000, 1000, 5}[i] {
					s.Add(incrementOf(ended{function: fmt.Sprint("f", n), failed: n%2 == 0, durations: []int64{10}}))
				}
				m.merge()
			}
			large, small := m.origins[0], m.origins[1]
			assert.NotEqual(t, none, large.rest)
			assert.Equal(t, none, small.rest)
			assert.Len(t, small.functions, 5)
			if name == "functions" {
				assert.Equal(t, settings.MaxFunctions/2, large.counted)
			} else {
				assert.Greater(t, large.bytes+large.reserved, settings.maxSeriesBytes()/2-10_000)
			}
		})
	}
}

func TestOriginsWithoutRoomShareOne(t *testing.T) {
	folded := uint64(0)
	m := New(Settings{MaxFunctions: 2, Folded: func(functions, _, _ uint64) { folded += functions }})
	var streams []*Stream
	for i := range 5 {
		s := m.Open(originOf(fmt.Sprint("service", i)), start)
		s.Add(incrementOf(ended{function: "f", durations: []int64{10}}))
		streams = append(streams, s)
	}
	got := pointsOf(t, answered(m, start+second, NewExemplars(m.settings)))
	assert.Len(t, got, 6)
	assert.EqualValues(t, 3, got[pointOf("", "code.function.calls", overflow, "")].count)
	assert.EqualValues(t, 3, folded)
	for _, s := range streams {
		s.End()
	}
	answered(m, start+2*second, NewExemplars(m.settings))
	answered(m, start+3*second, NewExemplars(m.settings))
	assert.Zero(t, m.Bytes())
}

// A program that defines functions all the time makes its stream forget names, and each time its sums
// are added.
func TestIncrementsDoNotPileUp(t *testing.T) {
	m, most := New(Settings{MaxFunctions: 20}), 0
	s := m.Open(originOf("a"), start)
	for range 1000 {
		s.Add(incrementOf(ended{function: "f", durations: []int64{10, 20}}))
		most = max(most, m.Bytes())
	}
	assert.Less(t, most, 25_000)
	got := pointsOf(t, answered(m, start+second, NewExemplars(m.settings)))
	assert.EqualValues(t, 2000, got[pointOf("a", "code.function.calls", "f", "")].count)
}

func TestNamesThatIncrementsShareCountOnce(t *testing.T) {
	m := New(Settings{MaxFunctions: unbounded})
	s, i := m.Open(originOf("a"), start), incrementOf(ended{function: strings.Repeat("f", 1000), durations: []int64{10}})
	added := func() int {
		before := m.Bytes()
		s.Add(i)
		return m.Bytes() - before
	}
	first, second := added(), added()
	assert.Less(t, second, first-1000)
	i = incrementOf(ended{function: strings.Repeat("g", 1000), durations: []int64{10}})
	assert.Greater(t, added(), 1000, "the stream forgot its names")
	m.merge()
	assert.Zero(t, m.addedBytes)
	before := m.Bytes()
	assert.Equal(t, first, added(), "nothing has the names any more")
	assert.Greater(t, m.Bytes(), before)
}

func TestFunctionsHaveABoundInBytes(t *testing.T) {
	folded := uint64(0)
	settings := Settings{MaxFunctions: unbounded, MaxBytes: 1 << 20, Folded: func(functions, names, bytes uint64) {
		assert.Zero(t, functions+names)
		folded += bytes
	}}
	m := New(settings)
	s := m.Open(originOf("a"), start)
	const functions = 5000
	for n := range functions {
		s.Add(incrementOf(ended{
			function: fmt.Sprint(strings.Repeat("f", n%1000), n), failed: n%2 == 0, errorType: fmt.Sprint("e", n), durations: []int64{1, 1 << 40},
		}))
		require.LessOrEqual(t, m.Bytes(), settings.MaxBytes+10_000)
	}
	points := pointsOf(t, answered(m, start+second, NewExemplars(settings)))
	require.LessOrEqual(t, m.Bytes(), settings.maxSeriesBytes())
	calls := uint64(0)
	for key, p := range points {
		if strings.HasPrefix(key, "a code.function.calls") {
			calls += p.count
		}
	}
	assert.EqualValues(t, 2*functions, calls, "each call counts")
	assert.Positive(t, points[pointOf("a", "code.function.errors", overflow, "")].count)
	assert.Equal(t, points[pointOf("a", "code.function.duration", overflow, "")].count, folded)
	s.End()
	answered(m, start+2*second, NewExemplars(settings))
	answered(m, start+3*second, NewExemplars(settings))
	assert.Zero(t, m.bytes)
	assert.Zero(t, m.reserved)
}

func TestLongNamesHaveNoSeries(t *testing.T) {
	folded := uint64(0)
	m := New(Settings{MaxFunctions: unbounded, MaxNameBytes: 4, Folded: func(functions, names, bytes uint64) {
		assert.Zero(t, functions+bytes)
		folded += names
	}})
	s := m.Open(originOf("a"), start)
	s.Add(incrementOf(
		ended{function: "four", durations: []int64{10}},
		ended{function: "fives", durations: []int64{10, 20}},
		ended{function: "four", failed: true, errorType: "long error", durations: []int64{10}},
	))
	points := pointsOf(t, answered(m, start+second, NewExemplars(m.settings)))
	assert.EqualValues(t, 2, points[pointOf("a", "code.function.calls", "four", "")].count)
	assert.EqualValues(t, 2, points[pointOf("a", "code.function.calls", overflow, "")].count)
	assert.EqualValues(t, 1, points[pointOf("a", "code.function.duration", "four", "")].count)
	assert.EqualValues(t, 3, points[pointOf("a", "code.function.duration", overflow, "")].count)
	assert.EqualValues(t, 3, folded)
}

func TestSeriesOfAnEndedProgramExpire(t *testing.T) {
	f := incrementOf(ended{function: "f", durations: []int64{10}})
	for name, test := range map[string]struct {
		settings Settings
		values   int // intervals with values after the end
	}{
		"at the end of the time":              {Settings{MaxFunctions: 100, Expiration: 30 * time.Second}, 4},
		"if others need the room":             {Settings{MaxFunctions: 1, Expiration: 30 * time.Second}, 1},
		"in the next interval without a time": {Settings{MaxFunctions: 100}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, none := New(test.settings), NewExemplars(test.settings)
			s := m.Open(originOf("a"), start)
			s.Add(f)
			s.Add(incrementOf(ended{function: "g", durations: []int64{10}}))
			s.End()
			var got []bool
			for i := pcommon.Timestamp(1); m.Bytes() > 0; i++ {
				p := pointsOf(t, answered(m, start+10*i*second, none))[pointOf("a", "code.function.duration", "f", "")]
				got = append(got, p.stale)
			}
			assert.Equal(t, append(make([]bool, test.values), true), got)
		})
	}
}

// Series expire at the same time if the system's clock is set while they wait for it.
func TestSeriesExpireByMonotonicTime(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forwards": time.Hour, "backwards": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			settings := Settings{MaxFunctions: 100, Expiration: 30 * time.Second}
			m, none := New(settings), NewExemplars(settings)
			s := m.Open(originOf("a"), start)
			s.Add(incrementOf(ended{function: "f", durations: []int64{10}}))
			s.End()
			var got []bool
			for i := 1; m.Bytes() > 0; i++ {
				require.Less(t, i, 10, "intervals")
				now := at(start + pcommon.Timestamp(10*i)*second)
				if i > 2 {
					now.Unix = pcommon.Timestamp(int64(now.Unix) + jump.Nanoseconds())
				}
				p := pointsOf(t, m.Interval(now, none))[pointOf("a", "code.function.duration", "f", "")]
				m.Answered(now.Elapsed)
				got = append(got, p.stale)
			}
			assert.Equal(t, []bool{false, false, false, false, true}, got)
		})
	}
}

// No last point is lost while the next component refuses, although another program needs the place. Meanwhile the calls
// of that one count at otel.metric.overflow.
func TestSeriesDoNotEndBeforeTheirLastPointsAreAnswered(t *testing.T) {
	m, none := New(Settings{MaxFunctions: 3, Expiration: time.Second}), NewExemplars(Settings{})
	f := incrementOf(ended{function: "f", durations: []int64{10}})
	key := func(service, function string) string { return pointOf(service, "code.function.calls", function, "") }
	s, other := m.Open(originOf("a"), start), m.Open(originOf("b"), start)
	s.Add(f)
	m.Interval(at(start+second), none)
	s.Add(f)
	s.End()
	now := start + 2*second
	for ; now < start+10*second; now += second {
		m.Hurry()
		other.Add(f)
		other.Add(incrementOf(ended{function: "g", durations: []int64{10}}))
		got := pointsOf(t, m.Interval(at(now), none))
		require.EqualValues(t, 2, got[key("a", "f")].count)
		require.NotContains(t, got, key("b", "g"))
		m.Answered(at(start + second).Elapsed) // the interval with the first call
	}
	got := pointsOf(t, m.Interval(at(now), none))
	assert.EqualValues(t, 2, got[key("a", "f")].count)
	assert.EqualValues(t, 8, got[key("b", overflow)].count)
	m.Answered(at(now).Elapsed)
	for range 3 {
		now += second
		assert.True(t, pointsOf(t, m.Interval(at(now), none))[key("a", "f")].stale, "the end is sent until it is answered")
	}
	m.Answered(at(now).Elapsed)
	other.Add(incrementOf(ended{function: "g", durations: []int64{10}}))
	got = pointsOf(t, m.Interval(at(now+second), none))
	assert.NotContains(t, got, key("a", "f"))
	assert.EqualValues(t, 1, got[key("b", "g")].count)
	assert.Equal(t, now, got[key("b", "g")].start)
}

// A stream opens its series with its first call. That can be after the end of series with the same origin.
func TestNewSeriesStartAfterTheEndOfTheFormerOnes(t *testing.T) {
	m, none := New(Settings{MaxFunctions: 100}), NewExemplars(Settings{})
	f := incrementOf(ended{function: "f", durations: []int64{10}})
	quiet := m.NewStream()
	s := m.Open(originOf("a"), start)
	s.Add(f)
	s.End()
	answered(m, start+10*second, none)
	key := pointOf("a", "code.function.calls", "f", "")
	require.True(t, pointsOf(t, answered(m, start+20*second, none))[key].stale)
	quiet.Open(originOf("a"), start+5*second)
	quiet.Add(f)
	got := pointsOf(t, answered(m, start+30*second, none))[key]
	assert.Equal(t, start+20*second, got.start)
	assert.EqualValues(t, 1, got.count)
}

func TestSeriesStartWithTheirResource(t *testing.T) {
	m, none := New(Settings{MaxFunctions: 1}), NewExemplars(Settings{})
	key := func(service, function string) string {
		return pointOf(service, "code.function.duration", function, "")
	}
	f, g := incrementOf(ended{function: "f", durations: []int64{10}}), incrementOf(ended{function: "g", durations: []int64{10}})
	late := m.Open(originOf("a"), start+5*second)
	early := m.Open(originOf("a"), start+3*second)
	late.Add(f)
	assert.Equal(t, start+3*second, pointsOf(t, answered(m, start+10*second, none))[key("a", "f")].start)

	again := m.Open(originOf("a"), start+second)
	early.End()
	late.Add(g)
	got := pointsOf(t, answered(m, start+20*second, none))
	assert.Equal(t, start+3*second, got[key("a", "f")].start, "a start does not change after its first point")
	assert.Equal(t, start+3*second, got[key("a", overflow)].start)

	late.End()
	again.End()
	answered(m, start+30*second, none)
	reborn := m.Open(originOf("a"), start+31*second)
	got = pointsOf(t, answered(m, start+40*second, none))
	assert.Equal(t, start+3*second, got[key("a", "f")].start, "a stream continues series that have not ended")
	assert.False(t, got[key("a", "f")].stale)

	reborn.End()
	answered(m, start+50*second, none)
	assert.True(t, pointsOf(t, answered(m, start+60*second, none))[key("a", "f")].stale)
	m.Open(originOf("a"), start+90*second).Add(f)
	got = pointsOf(t, answered(m, start+70*second, none))
	assert.Equal(t, start+70*second, got[key("a", "f")].start, "no series starts after its point")
	assert.EqualValues(t, 1, got[key("a", "f")].count)
}

func TestAFunctionThatGetsRoomLaterStartsAtTheLastInterval(t *testing.T) {
	m, none := New(Settings{MaxFunctions: 3}), NewExemplars(Settings{})
	one, two := m.Open(originOf("a"), start), m.Open(originOf("b"), start)
	g := incrementOf(ended{function: "g", durations: []int64{10}})
	one.Add(incrementOf(ended{function: "f", durations: []int64{10}}))
	two.Add(incrementOf(ended{function: "f", durations: []int64{10}}))
	two.Add(g)
	one.End()
	for i := range pcommon.Timestamp(3) {
		answered(m, start+(1+i)*second, none)
	}
	two.Add(g)
	got := pointsOf(t, answered(m, start+9*second, none))
	for _, metric := range []string{"code.function.calls", "code.function.duration"} {
		assert.Equal(t, start, got[pointOf("b", metric, "f", "")].start)
		assert.Equal(t, start+3*second, got[pointOf("b", metric, "g", "")].start)
		assert.EqualValues(t, 1, got[pointOf("b", metric, overflow, "")].count)
	}
}

// The system's clock can be set back. Then series that begin have no start time after that of their points.
func TestNoPointStartsAfterItsTime(t *testing.T) {
	m, none := New(Settings{MaxFunctions: 3}), NewExemplars(Settings{})
	one, two := m.Open(originOf("a"), start), m.Open(originOf("b"), start)
	g := incrementOf(ended{function: "g", durations: []int64{10}})
	one.Add(incrementOf(ended{function: "f", durations: []int64{10}}))
	two.Add(incrementOf(ended{function: "f", durations: []int64{10}}, ended{function: "g", durations: []int64{10}}))
	one.End()
	for i := range pcommon.Timestamp(3) {
		answered(m, start+(1+i)*second, none)
	}
	two.Add(g)
	got := pointsOf(t, m.Interval(Moment{Unix: start + 2*second, Elapsed: time.Duration(start + 9*second)}, none))
	for _, metric := range []string{"code.function.calls", "code.function.duration"} {
		require.Contains(t, got, pointOf("b", metric, "g", ""))
		for key, p := range got {
			assert.LessOrEqual(t, p.start, p.time, key)
		}
	}
}

func TestASumOfDurationsHasNoBound(t *testing.T) {
	m := New(Settings{MaxFunctions: 1})
	s := m.Open(originOf("a"), start)
	for range 8 {
		i := incrementOf(ended{function: "f", durations: []int64{1}})
		i.ByFunction[0].Sum = math.MaxInt64
		s.Add(i)
	}
	got := pointsOf(t, answered(m, start+second, NewExemplars(m.settings)))
	assert.InEpsilon(t, 8*float64(math.MaxInt64)/1e9, got[pointOf("a", "code.function.duration", "f", "")].sum, 1e-12)
}

func TestAPointHasTheLatestExemplarOfItsFunction(t *testing.T) {
	m := New(Settings{MaxFunctions: 3})
	x := NewExemplars(m.settings)
	exemplar := func(n byte, at pcommon.Timestamp) Exemplar {
		return Exemplar{TraceID: pcommon.TraceID{15: n}, SpanID: pcommon.SpanID{7: n}, Duration: 250 * time.Millisecond, Time: at * second}
	}
	s, other, gone := m.Open(originOf("a"), start), m.Open(originOf("a"), start), m.Open(originOf("b"), start)
	s.Add(incrementOf(
		ended{function: "f", durations: []int64{10}}, ended{function: "f", failed: true, durations: []int64{10}},
		ended{function: "g", durations: []int64{10}}, ended{function: "h", durations: []int64{10}},
	))
	gone.Add(incrementOf(ended{function: "f", durations: []int64{10}}))
	gone.End()
	x.Set(s, "f", exemplar(1, 8))
	x.Set(s, "f", exemplar(2, 9))
	x.Set(s, "f", exemplar(3, 7))
	x.SetError(s, "f", "", exemplar(4, 3))
	x.Set(other, "f", exemplar(5, 4))
	x.Set(s, "g", exemplar(6, 1))
	assert.Equal(t, 3, len(x.latest), "exemplars have the bound of functions")
	assert.Positive(t, x.Bytes())
	first := answered(m, start+second, x)
	got := pointsOf(t, first)
	key := func(function, errorType string) string {
		return pointOf("a", "code.function.duration", function, errorType)
	}
	assert.Equal(t, "2/2 0.25 at 9;", got[key("f", "")].exemplars)
	assert.Equal(t, "4/4 0.25 at 3;", got[key("f", "_OTHER")].exemplars)
	assert.Empty(t, got[key("g", "")].exemplars)
	assert.Equal(t, "2/2 1 at 9;", got[pointOf("a", "code.function.calls", "f", "")].exemplars)
	assert.Empty(t, got[pointOf("a", "code.function.calls", "g", "")].exemplars)

	x = NewExemplars(m.settings)
	x.Set(s, "h", exemplar(7, 11))
	x.Set(gone, "f", exemplar(8, 11))
	got = pointsOf(t, answered(m, start+2*second, x))
	assert.Equal(t, "7/7 0.25 at 11;", got[key(overflow, "")].exemplars)
	assert.Equal(t, "7/7 1 at 11;", got[pointOf("a", "code.function.calls", overflow, "")].exemplars)
	assert.Empty(t, got[key("f", "")].exemplars, "each interval has its own exemplars")
	assert.Empty(t, got[pointOf("b", "code.function.duration", overflow, "")].exemplars, "points without a value have no exemplar")
	assert.Empty(t, pointsOf(t, first)[pointOf("b", "code.function.duration", overflow, "")].exemplars, "earlier points do not change")
	assert.NotPanics(t, func() { answered(m, start+3*second, x) }, "the stream of an exemplar is forgotten")
}

// The owner could not take all sums. So an exemplar whose function is unknown waits for the next interval.
func TestAnExemplarWithoutItsCallWaits(t *testing.T) {
	m := New(Settings{MaxFunctions: 100, MaxNameBytes: 10})
	s, late, x := m.Open(originOf("a"), start), m.NewStream(), NewExemplars(m.settings)
	s.Add(incrementOf(ended{function: "f", durations: []int64{10}}, ended{function: "a long name", durations: []int64{10}}))
	x.Set(s, "f", Exemplar{SpanID: pcommon.SpanID{7: 1}, Time: 8 * second})
	x.Set(s, "g", Exemplar{SpanID: pcommon.SpanID{7: 2}, Time: 8 * second})
	x.Set(late, "g", Exemplar{SpanID: pcommon.SpanID{7: 3}, Time: 8 * second})
	next := NewExemplars(m.settings)
	next.Set(late, "g", Exemplar{SpanID: pcommon.SpanID{7: 4}, Time: 9 * second})
	next.Add(m.TakeUnknown(x))
	key := func(service, function string) string { return pointOf(service, "code.function.calls", function, "") }
	got := pointsOf(t, m.Interval(at(start+second), x))
	assert.Equal(t, "0/1 1 at 8;", got[key("a", "f")].exemplars)
	assert.Empty(t, got[key("a", overflow)].exemplars)

	g := incrementOf(ended{function: "g", durations: []int64{10}})
	s.Add(g)
	late.Open(originOf("b"), start)
	late.Add(g)
	got = pointsOf(t, m.Interval(at(start+2*second), next))
	assert.Equal(t, "0/2 1 at 8;", got[key("a", "g")].exemplars)
	assert.Equal(t, "0/4 1 at 9;", got[key("b", "g")].exemplars)
}

// The owner can fail to take all sums in many intervals. An exemplar that waits never keeps the place of a new one, and new ones
// keep theirs.
func TestExemplarsThatWaitMakeRoomForNewOnes(t *testing.T) {
	g, h := "g"+strings.Repeat("n", 100_000), "h"+strings.Repeat("n", 100_000)
	for name, settings := range map[string]Settings{
		"in number": {MaxFunctions: 2},
		"in bytes":  {MaxFunctions: 100, MaxBytes: 8 * (2*(bytesOfExemplar+len(g)) + 10)},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(settings)
			s, blocked, x := m.Open(originOf("a"), start), m.NewStream(), NewExemplars(settings)
			x.Set(blocked, g, Exemplar{SpanID: pcommon.SpanID{7: 1}, Time: 8 * second})
			x.Set(blocked, h, Exemplar{SpanID: pcommon.SpanID{7: 2}, Time: 8 * second})
			for range 3 {
				next := NewExemplars(settings)
				next.Add(m.TakeUnknown(x))
				x = next
				assert.Len(t, x.latest, 2, "exemplars wait while there is room")
			}
			x.Set(s, "f", Exemplar{SpanID: pcommon.SpanID{7: 3}, Time: 9 * second})
			late := NewExemplars(settings)
			late.Set(blocked, g, Exemplar{SpanID: pcommon.SpanID{7: 4}, Time: 8 * second})
			late.Set(blocked, h, Exemplar{SpanID: pcommon.SpanID{7: 5}, Time: 8 * second})
			x.Add(m.TakeUnknown(late))
			s.Add(incrementOf(ended{function: "f", durations: []int64{10}}))
			got := pointsOf(t, m.Interval(at(start+second), x))
			assert.Equal(t, "0/3 1 at 9;", got[pointOf("a", "code.function.calls", "f", "")].exemplars)
			assert.Len(t, x.latest, 2)
			assert.Equal(t, 2*bytesOfExemplar+1+len(g), x.Bytes())
		})
	}
}

// The duration of such a call is in the rest. Its function counts the call.
func TestAnExemplarWithoutRoomForItsErrorTypeIsAtItsFunction(t *testing.T) {
	m := New(Settings{MaxFunctions: 100, MaxNameBytes: 10})
	s, x := m.Open(originOf("a"), start), NewExemplars(m.settings)
	s.Add(incrementOf(
		ended{function: "f", durations: []int64{10}},
		ended{function: "g", failed: true, errorType: "a.long.error.type", durations: []int64{10}},
	))
	x.SetError(s, "g", "a.long.error.type", Exemplar{SpanID: pcommon.SpanID{7: 1}, Time: 8 * second, Duration: 250 * time.Millisecond})
	got := pointsOf(t, answered(m, start+second, x))
	assert.Equal(t, "0/1 1 at 8;", got[pointOf("a", "code.function.calls", "g", "")].exemplars)
	assert.Equal(t, "0/1 0.25 at 8;", got[pointOf("a", "code.function.duration", overflow, "")].exemplars)
	assert.Empty(t, got[pointOf("a", "code.function.calls", "f", "")].exemplars)
}

func TestExemplarsHaveABoundInBytes(t *testing.T) {
	settings := Settings{MaxFunctions: unbounded, MaxBytes: 80_000}
	m, x := New(settings), NewExemplars(settings)
	s := m.Open(originOf("a"), start)
	for n := range 100 {
		name := fmt.Sprint(strings.Repeat("f", 1000), n)
		x.Set(s, name, Exemplar{Time: start})
		x.SetError(s, "f", name, Exemplar{Time: start})
		x.Set(s, name, Exemplar{Time: start + second})
		require.GreaterOrEqual(t, x.Bytes(), 1000*len(x.latest), "the texts count once")
		require.LessOrEqual(t, x.Bytes(), 10_000)
	}
	assert.Len(t, x.latest, 8)
}

func TestGolden(t *testing.T) {
	m := New(Settings{MaxFunctions: 5})
	x := NewExemplars(m.settings)
	r := pcommon.NewResource()
	r.Attributes().PutStr("service.name", "shop")
	s := m.Open(origin.New(r, schema.URL, pcommon.NewInstrumentationScope(), schema.URL), start)
	s.Add(incrementOf(
		ended{function: "shop.Cart.total", durations: []int64{1_000_000, 1_010_000, 1_200_000}},
		ended{function: "shop.Tax.of", durations: []int64{30_000_000, 35_000_000}},
		ended{function: "shop.Tax.of", failed: true, errorType: "shop.NoRate", durations: []int64{500_000}},
		ended{function: "shop.Mail.send", durations: []int64{7_000}},
	))
	x.Set(s, "shop.Tax.of", Exemplar{TraceID: pcommon.TraceID{15: 1}, SpanID: pcommon.SpanID{7: 2}, Duration: 35 * time.Millisecond, Time: start + 59*second})
	got := answered(m, start+60*second, x)
	file := filepath.Join("testdata", "golden.yaml")
	if *update {
		require.NoError(t, golden.WriteMetricsToFile(file, got, golden.SkipMetricTimestampNormalization()))
	}
	want, err := golden.ReadMetrics(file)
	require.NoError(t, err)
	require.NoError(t, pmetrictest.CompareMetrics(want, got, pmetrictest.IgnoreMetricDataPointsOrder()))
}

func TestTheReadmeHasTheMetrics(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	for _, d := range []definition{calls, failures, duration} {
		kind := "sum, cumulative, monotonic"
		if d == duration {
			kind = "exponential histogram, cumulative"
		}
		assert.Contains(t, string(page), fmt.Sprintf("\n| `%s` | %s | `%s` | %s |", d.name, kind, d.unit, d.description))
	}
}

// manyFunctions returns an increment of so many functions, each with durations of some powers of two.
func manyFunctions(n int) *callsum.Increment {
	i := &callsum.Increment{Exceptions: []string{""}}
	for f := range n {
		i.Functions = append(i.Functions, &callevent.Function{Qualified: fmt.Sprintf("org.example.project.module%d.Class%d.method%d", f%100, f%1000, f)})
		durations := []int64{1_000, 1_500, 2_000, 3_000, 10_000 + int64(f)}
		sum := callsum.FunctionSum{Function: uint32(f), Calls: uint64(len(durations)), Sum: 17_500, Histogram: histogramOf(4, durations)}
		i.ByFunction = append(i.ByFunction, sum)
	}
	return i
}

func TestBytesAreAboutTheMemory(t *testing.T) {
	var m *Metrics
	i := manyFunctions(20_000)
	size := func() int {
		if m == nil {
			return 0
		}
		return m.Bytes()
	}
	heapsize.AssertCounted(t, size, func() {
		m = New(Settings{MaxFunctions: unbounded})
		m.Open(originOf("a"), start).Add(i)
		m.merge()
	}, 0.3)
	runtime.KeepAlive(i)
}

// The cost of an interval: adding the growth of 100,000 functions, and making their points.
func BenchmarkInterval(b *testing.B) {
	const functions = 100_000
	m, i := New(Settings{MaxFunctions: functions}), manyFunctions(functions)
	s, now, points := m.Open(originOf("a"), start), start, 0
	s.Add(i)
	answered(m, now, NewExemplars(m.settings))
	cputime.Page(b, func() {
		now += second
		s.Add(i)
		points = answered(m, now, NewExemplars(m.settings)).DataPointCount()
	})
	b.ReportMetric(float64(points), "points/interval")
}
