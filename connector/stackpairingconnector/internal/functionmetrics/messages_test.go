// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package functionmetrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// contentsOf are all points of messages, each as protobuf with its resource, its scope and its metric.
func contentsOf(t *testing.T, messages ...pmetric.Metrics) (all []string) {
	t.Helper()
	for _, md := range messages {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					write := func(move func(pmetric.MetricSlice)) {
						single := pmetric.NewMetrics()
						to := single.ResourceMetrics().AppendEmpty()
						rm.Resource().CopyTo(to.Resource())
						to.SetSchemaUrl(rm.SchemaUrl())
						scope := to.ScopeMetrics().AppendEmpty()
						sm.Scope().CopyTo(scope.Scope())
						move(scope.Metrics())
						bytes, err := new(pmetric.ProtoMarshaler).MarshalMetrics(single)
						require.NoError(t, err)
						all = append(all, string(bytes))
					}
					of := definition{m.Name(), m.Unit(), m.Description()}
					if m.Type() == pmetric.MetricTypeSum {
						for _, p := range m.Sum().DataPoints().All() {
							write(func(to pmetric.MetricSlice) { p.CopyTo(of.appendSum(to, 1).AppendEmpty()) })
						}
						continue
					}
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						write(func(to pmetric.MetricSlice) { p.CopyTo(of.appendHistogram(to, 1).AppendEmpty()) })
					}
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestMessagesHaveAllPointsWithTheirExemplarsWithinTheirBound(t *testing.T) {
	m := New(Settings{MaxFunctions: unbounded})
	exemplars := NewExemplars(m.settings)
	for service := range 20 {
		s := m.Open(originOf(fmt.Sprint("service ", service)), start)
		for n := range 1 << (service % 8) {
			name := fmt.Sprint("f", n, strings.Repeat("x", n))
			s.Add(incrementOf(ended{name, false, "", []int64{1, 1000}}, ended{name, true, "E", []int64{7}}))
			exemplars.Set(s, name, Exemplar{TraceID: pcommon.TraceID{byte(n), 1}, Time: start})
		}
		if service%3 == 0 {
			s.End()
		}
	}
	const bound = 10_000
	whole := answered(m, start+second, exemplars)
	want, size := contentsOf(t, whole), sizer.MetricsSize(whole)
	var messages []pmetric.Metrics
	for md := range Messages(whole, bound) {
		require.LessOrEqual(t, sizer.MetricsSize(md), bound)
		require.Positive(t, md.DataPointCount())
		messages = append(messages, md)
	}
	assert.Less(t, len(messages), 2*size/bound, "messages are well filled")
	assert.Equal(t, want, contentsOf(t, messages...))

	// The last points, each in a metric of its own, and none after them.
	ends := m.Interval(at(start+2*second), exemplars)
	require.True(t, ends.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Flags().NoRecordedValue())
	want = contentsOf(t, ends)
	assert.Equal(t, want, contentsOf(t, slices.Collect(Messages(ends, bound))...))
	assert.Empty(t, slices.Collect(Messages(pmetric.NewMetrics(), bound)))
	for range Messages(m.Interval(at(start+3*second), exemplars), bound) {
		break // the caller may stop
	}
}

// A resource that is larger than a message is not repeated for each point.
func TestALargeResourceMakesLargerMessages(t *testing.T) {
	m := New(Settings{MaxFunctions: unbounded})
	s := m.Open(originOf(strings.Repeat("large", 10_000)), start)
	for n := range 1_000 {
		s.Add(incrementOf(ended{fmt.Sprint("f", n), false, "", []int64{1}}))
	}
	md := m.Interval(at(start+second), NewExemplars(m.settings))
	size, divided := sizer.MetricsSize(md), 0
	for message := range Messages(md, 10_000) {
		divided += sizer.MetricsSize(message)
	}
	assert.Less(t, divided, 3*size)
}
