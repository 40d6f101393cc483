// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// sums are the highest values of cumulative sums: by metric, then by series and start time. A
// restarted server begins at 0.
type sums map[string]map[series]int64

type series struct {
	of    string // resource and attributes
	began pcommon.Timestamp
}

// learn stores the values of the metrics that a balance needs.
func (s sums) learn(metrics pmetric.Metrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		resource := text(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != methodCalls && m.Name() != rbkitEvents && m.Name() != functionCalls || m.Type() != pmetric.MetricTypeSum {
					continue
				}
				s.learnPoints(m.Name(), resource, m.Sum().DataPoints())
			}
		}
	}
}

func (s sums) learnPoints(metric, resource string, points pmetric.NumberDataPointSlice) {
	if s[metric] == nil {
		s[metric] = map[series]int64{}
	}
	for _, p := range points.All() {
		key := series{resource + text(p.Attributes()), p.StartTimestamp()}
		s[metric][key] = max(s[metric][key], p.IntValue())
	}
}

// of returns the sum of all series of a metric, or of those of a service.
func (s sums) of(metric string, service ...string) (sum int64) {
	for key, n := range s[metric] {
		if len(service) == 0 || strings.Contains(key.of, "service.name="+service[0]+"\n") {
			sum += n
		}
	}
	return sum
}

// text lists attributes in the order of their names.
func text(attributes pcommon.Map) string {
	all := map[string]string{}
	for key, value := range attributes.All() {
		all[key] = value.AsString()
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(key + "=" + all[key] + "\n")
	}
	return b.String()
}
