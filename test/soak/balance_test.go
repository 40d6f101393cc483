// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestEventsThatAreNeitherDeliveredNorCountedAreUnexplained(t *testing.T) {
	for _, test := range []struct {
		name string
		balance
		want int64
	}{
		{"all is delivered", balance{sent: 10, delivered: 10}, 0},
		{"one is missing", balance{sent: 10, delivered: 9}, 1},
		{"missing data was counted", balance{sent: 10, delivered: 7, lost: counts{{"late", 2}, {"dropped", 1}}}, 0},
		{"more was counted than is missing", balance{sent: 10, delivered: 9, lost: counts{{"late", 2}}}, -1},
		{"a process can have lost the missing data", balance{sent: 10, delivered: 7, atMost: counts{{"waiting", 2}, {"open", 3}}}, 0},
		{"a process cannot have lost as much", balance{sent: 10, delivered: 3, atMost: counts{{"waiting", 2}, {"open", 3}}}, 2},
		{"delivered data was not sent", balance{sent: 10, delivered: 11}, -1},
		{"it was sent and not counted", balance{sent: 10, delivered: 13, more: 3}, 0},
		{"more was delivered than can have been sent", balance{sent: 10, delivered: 14, more: 3}, -1},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, test.unexplained()) })
	}
}

func TestEventsOfASpanAreItsEntryItsEndAndItsExceptions(t *testing.T) {
	span := func(throws ...pcommon.Timestamp) ptrace.Span {
		s := ptrace.NewSpan()
		s.SetStartTimestamp(10)
		s.SetEndTimestamp(20)
		for _, at := range throws {
			s.Events().AppendEmpty().SetTimestamp(at)
		}
		return s
	}
	assert.EqualValues(t, 2, eventsOf(span(), false))
	assert.EqualValues(t, 1, eventsOf(span(), true), "the end was not seen")
	assert.EqualValues(t, 4, eventsOf(span(12, 15), false))
	assert.EqualValues(t, 3, eventsOf(span(12, 20), false), "an exception that left the call at its end is no throw")
	assert.EqualValues(t, 3, eventsOf(span(12, 20), true), "no exception left a truncated call")
	many := span(12)
	many.SetDroppedEventsCount(5)
	assert.EqualValues(t, 8, eventsOf(many, false))
}

func TestSumsAddUpAllLives(t *testing.T) {
	all := sums{}
	service := "a"
	report := func(process string, began pcommon.Timestamp, method string, n int64) {
		metrics := pmetric.NewMetrics()
		resource := metrics.ResourceMetrics().AppendEmpty()
		resource.Resource().Attributes().PutStr("process", process)
		resource.Resource().Attributes().PutStr("service.name", service)
		m := resource.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(methodCalls)
		p := m.SetEmptySum().DataPoints().AppendEmpty()
		p.SetStartTimestamp(began)
		p.Attributes().PutStr("method", method)
		p.SetIntValue(n)
		all.learn(metrics)
	}
	report("1", 1, "a", 5)
	report("1", 1, "a", 7)
	report("1", 1, "a", 6) // arrived late
	report("1", 1, "b", 10)
	report("1", 2, "a", 100)
	service = "a_killed"
	report("2", 1, "a", 1000)
	assert.EqualValues(t, 1117, all.of(methodCalls))
	assert.EqualValues(t, 117, all.of(methodCalls, "a"))
}

func TestAGrowingNumberIsFound(t *testing.T) {
	samples := func(of func(i int) sample) (all []sample) {
		for i := range samplesOfRun {
			all = append(all, of(i))
		}
		return all
	}
	assert.Empty(t, grown(samples(func(i int) sample {
		return sample{time.Duration(i), 100 << 20, 80 + i%20, 90 - i%20}
	})))
	assert.Empty(t, grown(samples(func(i int) sample {
		return sample{memory: uint64(min(i, 5)) * 50 << 20, goroutines: 100, files: 100}
	})), "the collector gets warm")
	assert.Len(t, grown(samples(func(i int) sample { return sample{memory: uint64(i) * 20 << 20, goroutines: 100, files: 100} })), 1)
	assert.Len(t, grown(samples(func(i int) sample { return sample{memory: 1, goroutines: 10 * i, files: 10 * i} })), 2)
}
