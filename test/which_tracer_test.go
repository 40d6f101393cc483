// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/test/kit"
)

// The rule of docs/which-tracer.md makes spans of the callbacks of ROS 2: those of a program with the same tracepoints, which
// LTTng records.
func TestTheRuleForROS2MakesSpansOfCallbacks(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	node := filepath.Join(daemons.Dir, "node")
	build, err := exec.Command("gcc", "-I", "testdata/lttng", "-o", node, "testdata/lttng/callbacks.c", "-llttng-ust", "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", build)
	output := filepath.Join(daemons.Dir, "recorded")
	session := daemons.Create(t, lttng.Session{Name: "ros2", Output: output, Events: "ros2:*"})
	daemons.RunC(t, node)
	session.Destroy(t)

	rules := yamlBlocks(t, "../docs/which-tracer.md")
	require.Len(t, rules, 1)
	data := t.TempDir()
	c := kit.Start(t, added(t, shipped(t, "ctf-file.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:8889": testkit.Address(t), "endpoint: localhost:4040": testkit.Address(t),
	}), rules...), "CTF_TRACE="+output, "CALLBRAID_DATA="+data)
	awaitSaid(t, c, "All traces are read", 1)
	c.Stop(t)

	var spans []string
	eachTracesLine(t, filepath.Join(data, "ctf-file"), func(traces ptrace.Traces) {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					spans = append(spans, span.Name())
					assert.NotContains(t, span.Attributes().AsRaw(), "callbraid.truncated")
				}
			}
		}
	})
	assert.ElementsMatch(t, []string{"callback 1001", "callback 1002", "callback 1001"}, spans)
	functions := map[int64]string{}
	eachLogIn(t, filepath.Join(data, "ctf-file", "logs.json"), func(_ pcommon.Resource, _ pcommon.InstrumentationScope, r plog.LogRecord) {
		if r.EventName() != "ros2:rclcpp_callback_register" {
			return
		}
		number, _ := r.Attributes().Get("callback")
		function, _ := r.Attributes().Get("symbol")
		functions[number.Int()] = function.Str()
	})
	assert.Equal(t, map[int64]string{1001: "on_scan", 1002: "on_timer"}, functions)
}
