// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/lttngagent/simulated"
	"github.com/callbraid/callbraid/test/testbed"
	"github.com/callbraid/callbraid/test/testbed/lttng"
)

// config/lttng.yaml as it is shipped, and the programs of docs/lttng.md, with LTTng's own
// daemons.

// shippedForLTTng is config/lttng.yaml with other addresses and another port file; nothing
// else is changed.
func shippedForLTTng(t *testing.T, relay, spans, metrics, portFile string) string {
	t.Helper()
	return shipped(t, "lttng.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:5344": relay,
		"endpoint: localhost:4317": spans, "endpoint: localhost:8889": metrics,
		"endpoint: localhost:5360": "localhost:0", "port_files: [/var/run/lttng/agent.port]": "[" + portFile + "]",
	})
}

// spanBackend is what stands for Jaeger: a collector that takes spans over OTLP and gRPC and
// writes them to a file.
func spanBackend(t *testing.T, endpoint string) *testbed.Collector {
	t.Helper()
	return testbed.Start(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {file: %s}
service: {pipelines: {traces: {receivers: [otlp], exporters: [file]}}}
`, endpoint, testbed.FileExporter("spans.bin")))
}

// callCounts says how often a function was called by another, and how often it failed.
func callCounts(spans []ptrace.Span) map[string]int {
	byID := map[pcommon.SpanID]ptrace.Span{}
	for _, s := range spans {
		byID[s.SpanID()] = s
	}
	counts := map[string]int{}
	for _, s := range spans {
		call := s.Name()
		if caller, ok := byID[s.ParentSpanID()]; ok {
			call = caller.Name() + " > " + call
		}
		if s.Status().Code() == ptrace.StatusCodeError {
			call += ", failed"
		}
		counts[call]++
	}
	return counts
}

// get is what a server says.
func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// The rules of config/lttng.yaml hold for a program that finds the collector by the file
// that it has in there; LTTng's daemons are not needed for it.
func TestTheConfigurationForLTTngSwitchesLoggers(t *testing.T) {
	t.Parallel()
	portFile := filepath.Join(t.TempDir(), "agent.port")
	data := t.TempDir()
	c := testbed.Start(t, shippedForLTTng(t, testbed.Address(t), testbed.Address(t), testbed.Address(t), portFile), "CALLBRAID_DATA="+data)
	agent := simulated.New(simulated.Options{PortFile: portFile, PID: unusedPID, Loggers: []string{"com.example.shop"}})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, agent.Run(ctx)) })
	defer running.Wait()
	defer end()
	logs := filepath.Join(data, "lttng", "logs.json")
	said := func() (events []string) {
		if _, err := os.Stat(logs); err != nil {
			return nil // nothing was written yet
		}
		eachLogIn(t, logs, func(_ pcommon.Resource, _ pcommon.InstrumentationScope, r plog.LogRecord) {
			events = append(events, r.Body().Str())
		})
		return events
	}
	registered := []string{"Agent registered", "Logger com.example.shop appeared"}
	testbed.Eventually(t, "the program's logger", func() (bool, string) {
		events := said()
		return len(events) >= len(registered), fmt.Sprint(events)
	})
	assert.Equal(t, registered, said())
	assert.Equal(t, map[string]int{"com.example.*": 1}, agent.Enabled())
	c.Stop(t)
	assert.Empty(t, agent.Enabled())
	assert.NotContains(t, c.Log(), "A port file is not this receiver's")
}

func TestTheConfigurationForLTTngGivesWhatItsPageSays(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	spans, metrics, data := testbed.Address(t), testbed.Address(t), t.TempDir()
	backend := spanBackend(t, spans)
	c := testbed.Start(t, shippedForLTTng(t, daemons.Relay.Live, spans, metrics, daemons.SystemPortFile()), "CALLBRAID_DATA="+data)
	session := daemons.Create(t, lttng.Session{Name: "shop"})
	awaitSaid(t, c, "The session is attached", 1)
	daemons.RunC(t, daemons.BuildC(t, "../docs/examples/lttng/shop.c"))
	daemons.RunJava(t, daemons.BuildJava(t, "../docs/examples/lttng/Shop.java"))
	session.Destroy(t)
	awaitClosed(t, c, 1)
	testbed.Eventually(t, "the session's metrics", func() (bool, string) {
		text := get(t, "http://"+metrics+"/metrics")
		return strings.Contains(text, "lttng_events_total{") && strings.Contains(text, `lttng_session_name="shop"`), text
	})
	c.Stop(t)
	backend.Stop(t)

	assert.Equal(t, map[string]int{
		"main": 1, "take_orders": 2, "take_orders > take_order": 40, "take_order > price": 40,
		"take_order > reserve": 40, "reserve > reserve": 8,
		"Shop.takeOrder": 18, "Shop.takeOrder, failed": 2, "Shop.takeOrder > Shop.price": 20,
	}, callCounts(readSpans(t, backend)))
	records := map[string]int{}
	eachLogIn(t, filepath.Join(data, "lttng", "logs.json"), func(_ pcommon.Resource, scope pcommon.InstrumentationScope, r plog.LogRecord) {
		if scope.Name() == "com.example.shop" {
			word, _, _ := strings.Cut(r.Body().Str(), " ")
			records[r.SeverityText()+" "+word]++
		}
	})
	assert.Equal(t, map[string]int{
		"INFO open": 1, "INFO closed": 1, "WARNING order": 2, "FINE order": 20,
		"FINER ENTRY": 40, "FINER RETURN": 38, "FINER THROW": 2,
	}, records)
	kept, err := os.ReadDir(filepath.Join(data, "lttng", "storage"))
	require.NoError(t, err)
	assert.NotEmpty(t, kept)
	for line := range strings.Lines(c.Log()) {
		assert.Contains(t, line, "\tinfo\t", "all went well")
	}
}
