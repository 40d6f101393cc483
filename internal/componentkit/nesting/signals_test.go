// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package nesting_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/componentkit/nesting"
)

// nest puts levels of lists into a value.
func nest(v pcommon.Value, levels int) {
	v.SetStr("flat")
	for range levels {
		v = v.SetEmptySlice().AppendEmpty()
	}
}

func in(m pcommon.Map) func(levels int) {
	return func(levels int) { nest(m.PutEmpty("k"), levels) }
}

func TestEachPlaceOfEachSignalIsChecked(t *testing.T) {
	logs, metrics, profiles := plog.NewLogs(), pmetric.NewMetrics(), pprofile.NewProfiles()
	rl := logs.ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	record := sl.LogRecords().AppendEmpty()
	rm := metrics.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	gauge, sum, histogram, exponential, summary := sm.Metrics().AppendEmpty(), sm.Metrics().AppendEmpty(), sm.Metrics().AppendEmpty(), sm.Metrics().AppendEmpty(), sm.Metrics().AppendEmpty()
	sm.Metrics().AppendEmpty() // has nothing
	exemplar := sum.SetEmptySum().DataPoints().AppendEmpty().Exemplars().AppendEmpty()
	rp := profiles.ResourceProfiles().AppendEmpty()
	sp := rp.ScopeProfiles().AppendEmpty()
	attribute := profiles.Dictionary().AttributeTable().AppendEmpty()
	checks := map[string]func(most int) error{
		"logs":     func(most int) error { return nesting.Logs(logs, most) },
		"metrics":  func(most int) error { return nesting.Metrics(metrics, most) },
		"profiles": func(most int) error { return nesting.Profiles(profiles, most) },
	}
	for _, c := range []struct {
		signal, place string
		put           func(levels int)
	}{
		{"logs", `attribute "k" of a resource`, in(rl.Resource().Attributes())},
		{"logs", `attribute "k" of scope ""`, in(sl.Scope().Attributes())},
		{"logs", `attribute "k" of the log record in scope ""`, in(record.Attributes())},
		{"logs", `attribute "" of the body of a log record in scope ""`, func(levels int) { nest(record.Body(), levels) }},
		{"metrics", `attribute "k" of a resource`, in(rm.Resource().Attributes())},
		{"metrics", `attribute "k" of scope ""`, in(sm.Scope().Attributes())},
		{"metrics", `attribute "k" of the metric in scope ""`, in(gauge.Metadata())},
		{"metrics", `attribute "k" of the data point in scope ""`, in(gauge.SetEmptyGauge().DataPoints().AppendEmpty().Attributes())},
		{"metrics", `attribute "k" of the data point in scope ""`, in(sum.Sum().DataPoints().At(0).Attributes())},
		{"metrics", `attribute "k" of the exemplar in scope ""`, in(exemplar.FilteredAttributes())},
		{"metrics", `attribute "k" of the data point in scope ""`, in(histogram.SetEmptyHistogram().DataPoints().AppendEmpty().Attributes())},
		{"metrics", `attribute "k" of the data point in scope ""`, in(exponential.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes())},
		{"metrics", `attribute "k" of the data point in scope ""`, in(summary.SetEmptySummary().DataPoints().AppendEmpty().Attributes())},
		{"profiles", `attribute "k" of a resource`, in(rp.Resource().Attributes())},
		{"profiles", `attribute "k" of scope ""`, in(sp.Scope().Attributes())},
		{"profiles", `attribute "" of the dictionary of profiles in scope ""`, func(levels int) { nest(attribute.Value(), levels) }},
	} {
		t.Run(c.signal+" "+c.place, func(t *testing.T) {
			check := checks[c.signal]
			c.put(3)
			require.NoError(t, check(3))
			var e *nesting.Error
			require.ErrorAs(t, check(2), &e)
			assert.Equal(t, c.place+": expected at most 2 levels of lists and maps, got more", e.Error())
			c.put(0)
			require.NoError(t, check(0))
		})
	}
}
