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

// config/standalone.yaml as it is shipped, and with the selection of traces that its comment has for
// larger programs. Only addresses are changed, and times that the capture has.

// keptFrom is the least time of the first call of a kept trace, in nanoseconds.
const keptFrom = 60_000_000

// All calls of a capture are in the metrics and in the flame graph. All its traces are in the file, or
// slow ones, and some by their IDs.
func TestAllCallsAreCountedWhateverTracesAreKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keep  map[string]string
		check func(t *testing.T, want *reference.Result, directory string)
	}{
		"all traces of a small program": {check: checkAll},
		"slow traces, and one of a hundred others": {
			map[string]string{"ratio: 1": fmt.Sprintf("0.01\n      slower_than: %dns", keptFrom), "max_spans_per_second: 20000": "0"}, checkKept,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint, pages, numbers := testkit.Address(t), testkit.Address(t), testkit.Address(t)
			settings := map[string]string{
				"endpoint: localhost:8765": endpoint + "\n    service_name: shop", "endpoint: localhost:13133": "${env:HEALTH}",
				"endpoint: localhost:4040": pages, "endpoint: localhost:8889": numbers,
				"interval: 5s": "200ms" + allAttributes,
				"path: ${env:CALLBRAID_DATA:-./callbraid-data}/spans.json": "${env:DIR}/spans.json",
				"path: ${env:CALLBRAID_DATA:-./callbraid-data}/logs.json":  "${env:DIR}/logs.json",
			}
			maps.Copy(settings, test.keep)
			c := kit.Start(t, shipped(t, "standalone.yaml", settings))
			agent{endpoint: endpoint, capture: "shop"}.complete(t)
			want := reference.Spans(openCapture(t, "shop"), defaultRules)
			c.AwaitMetric(t, float64(len(want.Spans)), "otelcol_exporter_flame_graph_path_calls")

			t.Run("metrics", func(t *testing.T) { checkFunctionMetrics(t, want, "http://"+numbers+"/metrics") })
			t.Run("flame graph", func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "profile.pb.gz")
				require.NoError(t, os.WriteFile(path, []byte(fetch(t, "http://"+pages+"/services/shop/profile.pb.gz")), 0o600))
				assertSame(t, pathsOf(t, "shop").stacks(), stacksOfProfile(t, path))
			})
			c.Stop(t)
			t.Run("kept traces", func(t *testing.T) { test.check(t, want, c.Dir) })
		})
	}
}

// checkAll compares the traces in a directory with all of the reference.
func TestMetricsOfFunctionsEndWithTheProgram(t *testing.T) {
	t.Parallel()
	endpoint, numbers := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, shipped(t, "standalone.yaml", map[string]string{
		"endpoint: localhost:8765": endpoint, "endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:4040": testkit.Address(t),
		"endpoint: localhost:8889": numbers, "interval: 5s": "200ms", "      expiration: 1h": "1s",
	}), "CALLBRAID_DATA="+t.TempDir())
	await := func(are bool) {
		testkit.Eventually(t, fmt.Sprintf("metrics of functions are there: %t", are), func() (bool, string) {
			text := fetch(t, "http://"+numbers+"/metrics")
			return strings.Contains(text, "code_function_") == are, text
		})
	}
	half := newStage(shopEvents / 2)
	f := startFleet(t, 1, []string{endpoint}, openCapture(t, "shop"), half)
	f.at(t, half)
	await(true)
	close(half.open)
	f.complete(t)
	await(false)
	c.Stop(t)
}

func checkAll(t *testing.T, want *reference.Result, directory string) {
	kept := streams{}
	eachTracesLine(t, directory, func(traces ptrace.Traces) { kept.add(t, traces) })
	checkEqual(t, want, kept.only(t))
}

// functionPoint is a line of a metric by function, in Prometheus' format.
var functionPoint = regexp.MustCompile(`(?m)^code_function_(\w+)\{code_function_name="([^"]+)",(?:error_type="([^"]+)",)?([^}]*)\} (\S+)$`)

// checkFunctionMetrics compares all points of functions with the calls of the reference.
func checkFunctionMetrics(t *testing.T, want *reference.Result, address string) {
	wanted := functionSumsOf(want)
	testkit.Eventually(t, "metrics have all calls", func() (bool, string) {
		got := map[string]float64{}
		for _, point := range functionPoint.FindAllStringSubmatch(fetch(t, address), -1) {
			if metric := point[1]; !strings.HasSuffix(metric, "_bucket") {
				value, err := strconv.ParseFloat(point[5], 64)
				require.NoError(t, err)
				assert.Contains(t, point[4], `job="shop"`)
				got[functionSum(metric, point[2], point[3])] = value
			}
		}
		return maps.Equal(wanted, roundedAs(wanted, got)), fmt.Sprint(got)
	})
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
