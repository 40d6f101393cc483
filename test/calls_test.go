// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// config/calls.yaml as it is shipped, except for addresses, and for times that the capture has.

// keptFrom is the least time of the first call of a kept trace, in nanoseconds.
const keptFrom = 60_000_000

// All calls of a capture are in the metrics and in the flame graph, and only slow traces, and some by
// their IDs, are in the file.
func TestAllCallsAreCountedAndSlowTracesAreKept(t *testing.T) {
	t.Parallel()
	const name = "calls.yaml"
	endpoint, pages, numbers := testkit.Address(t), testkit.Address(t), testkit.Address(t)
	configuration := shipped(t, name, map[string]string{
		"endpoint: localhost:8765": endpoint + "\n    service_name: shop", "endpoint: localhost:13133": "${env:HEALTH}",
		"endpoint: localhost:4040": pages, "endpoint: localhost:8889": numbers,
		"interval: 5s": "200ms\n    metrics: {expiration: 5s}" + allAttributes, "slower_than: 1s": fmt.Sprint(keptFrom, "ns"),
		"path: ${env:CALLBRAID_DATA:-./callbraid-data}/calls/spans.json": "${env:DIR}/spans.json",
		"path: ${env:CALLBRAID_DATA:-./callbraid-data}/calls/logs.json":  "${env:DIR}/logs.json",
	})
	gates := gatesOf(t, shippedConfigs(t)[name])
	require.Len(t, gates, 1)
	assert.Contains(t, kit.StartFails(t, configuration), gates[0])

	c := kit.StartGated(t, gates[0], configuration)
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	want := reference.Spans(openCapture(t, "shop"), defaultRules)
	c.AwaitMetric(t, float64(len(want.Spans)), "otelcol_exporter_flame_graph_path_calls")

	t.Run("metrics", func(t *testing.T) { checkFunctionMetrics(t, want, "http://"+numbers+"/metrics") })
	t.Run("flame graph", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "profile.pb.gz")
		require.NoError(t, os.WriteFile(path, []byte(fetch(t, "http://"+pages+"/services/shop/profile.pb.gz")), 0o600))
		assertSame(t, pathsOf(t, "shop").stacks(), stacksOfProfile(t, path))
	})
	t.Run("the metrics end with the program", func(t *testing.T) {
		testkit.Eventually(t, "no function is there", func() (bool, string) {
			text := fetch(t, "http://"+numbers+"/metrics")
			return !strings.Contains(text, "code_function_"), text
		})
	})
	c.Stop(t)
	t.Run("kept traces", func(t *testing.T) { checkKept(t, want, c.Dir) })
}

// functionPoint is a line of a metric by function, in Prometheus' format.
var functionPoint = regexp.MustCompile(`(?m)^code_function_(\w+)\{code_function_name="([^"]+)",(?:error_type="([^"]+)",)?([^}]*)\} (\S+)$`)

// checkFunctionMetrics compares all points of functions with the calls of the reference.
func checkFunctionMetrics(t *testing.T, want *reference.Result, address string) {
	wanted := functionSumsOf(want)
	got := map[string]float64{}
	testkit.Eventually(t, "all points are there", func() (bool, string) {
		clear(got)
		for _, point := range functionPoint.FindAllStringSubmatch(fetch(t, address), -1) {
			if metric := point[1]; !strings.HasSuffix(metric, "_bucket") {
				value, err := strconv.ParseFloat(point[5], 64)
				require.NoError(t, err)
				assert.Contains(t, point[4], `job="shop"`)
				got[functionSum(metric, point[2], point[3])] = value
			}
		}
		return len(got) >= len(wanted), fmt.Sprintf("%d of %d", len(got), len(wanted))
	})
	assertFunctionSums(t, wanted, got)
}

// checkKept compares the traces in a directory with the slow ones of the reference. Others may be there
// too, if their IDs are so.
func checkKept(t *testing.T, want *reference.Result, directory string) {
	kept, states := streams{}, map[pcommon.TraceID]string{}
	eachTracesLine(t, directory, func(traces ptrace.Traces) {
		kept.add(t, traces)
		for _, rs := range traces.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				states[s.TraceID()] = s.TraceState().AsRaw()
			}
		}
	})
	got := kept.only(t)
	roots := map[int64]bool{} // of the traces that have to be there
	for _, s := range want.Spans {
		if s.Sequence == s.Trace && s.End-s.Start >= keptFrom {
			roots[s.Trace] = true
		}
	}
	require.NotEmpty(t, roots)
	require.Less(t, len(roots), want.Traces, "some traces are not slow")
	for i := range got.spans {
		if s := &got.spans[i]; s.parent.IsEmpty() && !roots[s.sequence] {
			// One of a hundred: T of the tracestate is 0.99 of 2^56.
			require.Equal(t, "ot=th:fd70a3d70a3d7", states[s.trace])
			require.GreaterOrEqual(t, s.trace.String()[18:], "fd70a3d70a3d70")
			roots[s.sequence] = true
		}
	}
	slow := *want
	slow.Spans = maps.Clone(want.Spans)
	maps.DeleteFunc(slow.Spans, func(_ int64, s *reference.Span) bool { return !roots[s.Trace] })
	checkEqual(t, &slow, got)
}
