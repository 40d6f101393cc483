// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package telemetrytest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Points returns the points of all counters whose name begins with a prefix. The keys are the names without the prefix,
// with attributes, such as: dumps{objects=complete}. It omits points of 0, and the attribute with the component's ID,
// which each point must have.
func Points(t testing.TB, telemetry *componenttest.Telemetry, prefix string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(context.Background(), &all))
	points := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			name, ours := strings.CutPrefix(m.Name, prefix)
			counter, counts := m.Data.(metricdata.Sum[int64])
			if !ours || !counts {
				continue
			}
			for _, p := range counter.DataPoints {
				if p.Value != 0 {
					points[name+attributes(t, m.Name, p.Attributes)] = p.Value
				}
			}
		}
	}
	return points
}

func attributes(t testing.TB, name string, all attribute.Set) string {
	t.Helper()
	set, identity := all.Filter(attribute.NewDenyKeysFilter("receiver", "processor", "exporter", "extension"))
	require.Len(t, identity, 1, "attributes with the component's ID, of %s", name)
	if set.Len() == 0 {
		return ""
	}
	return "{" + set.Encoded(attribute.DefaultEncoder()) + "}"
}
