// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/functionmetrics"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/engine"
)

// takeAnswered returns the metrics of an interval that the next component accepts.
func takeAnswered(s *sums) pmetric.Metrics {
	unix := pcommon.NewTimestampFromTime(time.Now())
	now := functionmetrics.Moment{Unix: unix, Elapsed: time.Duration(unix)}
	defer s.noteAnswered(now.Elapsed)
	return s.takeMetrics(now, s.swapExemplars(), true)
}

func TestAttributesOfTheScopeBeginNoNewSeries(t *testing.T) {
	s := newSums(createDefaultConfig().(*Config), true, true, noop.Int64UpDownCounter{})
	for _, schemaURL := range []string{"old", "new"} {
		stream := s.Begin()
		for missing := range int64(2) {
			scope := pcommon.NewInstrumentationScope()
			scope.SetName("receiver")
			scope.Attributes().PutInt("callbraid.missing.classes", missing)
			stream.Add(oneCall(), &engine.Source{Resource: pcommon.NewResource(), Scope: scope, ScopeSchemaURL: schemaURL})
		}
		stream.End()
	}
	md := takeAnswered(s)
	require.Equal(t, 1, md.ResourceMetrics().Len())
	scope := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
	assert.Equal(t, "receiver", scope.Scope().Name())
	assert.Zero(t, scope.Scope().Attributes().Len())
	assert.EqualValues(t, 4, scope.Metrics().At(0).Sum().DataPoints().At(0).IntValue())
	for pd := range s.takeGrowth().Messages(0, 1) {
		require.Equal(t, 4, pd.ResourceProfiles().Len(), "profiles have the attributes and the schema of the scope")
		for i, rp := range pd.ResourceProfiles().All() {
			value, _ := rp.ScopeProfiles().At(0).Scope().Attributes().Get("callbraid.missing.classes")
			assert.EqualValues(t, i%2, value.Int())
		}
	}
}

// Two steps of a stream deliver at the same time. The one that ends the stream may be the faster.
func TestAnIncrementThatFollowsTheEndOfItsStreamEndsItsSeriesToo(t *testing.T) {
	from := &engine.Source{Resource: pcommon.NewResource(), Scope: pcommon.NewInstrumentationScope()}
	for name, before := range map[string]func(*sums, engine.SourceSums){
		"its only one": func(*sums, engine.SourceSums) {},
		"another one":  func(_ *sums, stream engine.SourceSums) { stream.Add(oneCall(), from) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSums(patient(), true, false, noop.Int64UpDownCounter{})
			stream := s.Begin()
			before(s, stream)
			stream.End()
			takeAnswered(s)
			takeAnswered(s)
			stream.Add(oneCall(), from)
			md := takeAnswered(s)
			require.Positive(t, md.DataPointCount())
			ends := takeAnswered(s)
			require.Equal(t, md.DataPointCount(), ends.DataPointCount())
			point := ends.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
			assert.True(t, point.Flags().NoRecordedValue())
			assert.Zero(t, takeAnswered(s).DataPointCount())
		})
	}
}

// ofResource returns a source whose resource has so many bytes, which are those of no other number.
func ofResource(number, bytes int) *engine.Source {
	r := pcommon.NewResource()
	r.Attributes().PutStr("service.name", strconv.Itoa(number))
	r.Attributes().PutStr("large", strings.Repeat(string(rune('a'+number%26)), bytes))
	return &engine.Source{Resource: r, Scope: pcommon.NewInstrumentationScope()}
}

// oneCall returns an increment of one call of a function.
func oneCall() *callsum.Increment {
	return &callsum.Increment{
		Functions: []*callevent.Function{{Qualified: "f"}}, Exceptions: []string{""},
		ByFunction: []callsum.FunctionSum{{Calls: 1, Sum: 1, Histogram: callsum.Histogram{Counts: []uint64{1}}}},
		Paths:      []callsum.Path{{Kind: callsum.PathTop}, {}}, Grown: []callsum.PathGrowth{{Path: 1, PathValues: callsum.PathValues{Calls: 1, Self: 1}}},
	}
}

func TestSumsOfManyLargeResourcesStayBelowTheirBound(t *testing.T) {
	streams, resource := 2000, 1<<18
	if testing.Short() {
		streams = 200
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Limits.MaxSumsMiB = minSumsMiB
	s := newSums(cfg, true, true, noop.Int64UpDownCounter{})
	most := int64(0)
	for i := range streams {
		stream := s.Begin()
		stream.Add(oneCall(), ofResource(i, resource))
		stream.End()
		most = max(most, s.Bytes())
	}
	assert.LessOrEqual(t, most, int64(minSumsMiB<<20+2*resource))
	assert.Greater(t, most, int64(minSumsMiB<<20/2), "the bound was reached")

	md := takeAnswered(s)
	calls := int64(0)
	for _, rm := range md.ResourceMetrics().All() {
		calls += rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).IntValue()
	}
	assert.EqualValues(t, streams, calls, "each call counts")
	samples := int64(0)
	for pd := range s.takeGrowth().Messages(0, 1) {
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sample := range rp.ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
				samples += sample.Values().At(0)
			}
		}
	}
	assert.EqualValues(t, streams, samples, "each call counts")
	s.hold(-int(s.held.Load())) // as after the last message of profiles
	takeAnswered(s)
	assert.Less(t, s.Bytes(), int64(1<<20), "series without streams end if others need the room")
}

func TestSeriesWithoutStreamsEndIfTheMemoryBudgetDemandsMemory(t *testing.T) {
	s := newSums(createDefaultConfig().(*Config), true, false, noop.Int64UpDownCounter{})
	points := func() (n int) { return takeAnswered(s).DataPointCount() }
	open, ended := s.Begin(), s.Begin()
	open.Add(oneCall(), ofResource(0, 1))
	ended.Add(oneCall(), ofResource(1, 1))
	ended.End()
	require.Equal(t, 4, points())
	require.Equal(t, 4, points(), "the last points are sent again")
	s.GiveWay()
	assert.Equal(t, 4, points(), "the points that end the series")
	assert.Equal(t, 2, points())

	late := s.Begin()
	late.Add(oneCall(), ofResource(2, 1))
	late.End()
	s.GiveWay()
	assert.Equal(t, 4, points(), "the last values")
	assert.Equal(t, 4, points(), "the points that end the series")
	assert.Equal(t, 2, points())
	assert.Equal(t, 2, points(), "open streams keep their series")
}
