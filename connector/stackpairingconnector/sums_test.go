// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/engine"
)

func TestAttributesOfTheScopeBeginNoNewSeries(t *testing.T) {
	s := newSums(createDefaultConfig().(*Config), true, false, noop.Int64UpDownCounter{})
	for missing := range int64(2) {
		scope := pcommon.NewInstrumentationScope()
		scope.SetName("receiver")
		scope.Attributes().PutInt("callbraid.missing.classes", missing)
		stream := s.Begin(engine.Source{Resource: pcommon.NewResource(), Scope: scope})
		stream.Add(&callsum.Increment{
			Functions: []*callevent.Function{{Qualified: "f"}}, Exceptions: []string{""},
			ByFunction: []callsum.FunctionSum{{Calls: 1, Sum: 1, Histogram: callsum.Histogram{Counts: []uint64{1}}}},
		})
		stream.End()
	}
	md := s.takeMetrics(time.Now(), s.swapExemplars())
	require.Equal(t, 1, md.ResourceMetrics().Len())
	scope := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
	assert.Equal(t, "receiver", scope.Scope().Name())
	assert.Zero(t, scope.Scope().Attributes().Len())
	assert.EqualValues(t, 2, scope.Metrics().At(0).Sum().DataPoints().At(0).IntValue())
}

// Two steps of a stream deliver at the same time. The one that ends the stream may be the faster.
func TestAnIncrementThatFollowsTheEndOfItsStreamEndsItsSeriesToo(t *testing.T) {
	inc := func() *callsum.Increment {
		return &callsum.Increment{
			Functions: []*callevent.Function{{Qualified: "f"}}, Exceptions: []string{""},
			ByFunction: []callsum.FunctionSum{{Calls: 1, Sum: 1, Histogram: callsum.Histogram{Counts: []uint64{1}}}},
		}
	}
	for name, before := range map[string]func(*sums, engine.SourceSums){
		"its only one": func(*sums, engine.SourceSums) {},
		"another one":  func(_ *sums, stream engine.SourceSums) { stream.Add(inc()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSums(patient(), true, false, noop.Int64UpDownCounter{})
			stream := s.Begin(engine.Source{Resource: pcommon.NewResource(), Scope: pcommon.NewInstrumentationScope()})
			before(s, stream)
			stream.End()
			s.takeMetrics(time.Now(), s.swapExemplars())
			s.takeMetrics(time.Now(), s.swapExemplars())
			stream.Add(inc())
			md := s.takeMetrics(time.Now(), s.swapExemplars())
			require.Positive(t, md.DataPointCount())
			ends := s.takeMetrics(time.Now(), s.swapExemplars())
			require.Equal(t, md.DataPointCount(), ends.DataPointCount())
			point := ends.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
			assert.True(t, point.Flags().NoRecordedValue())
			assert.Zero(t, s.takeMetrics(time.Now(), s.swapExemplars()).DataPointCount())
		})
	}
}
