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
