// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/pipeline"
)

// configure gives the extension a configuration of the collector, whose own metrics are at an address; empty: nowhere.
func (b *bed) configure(metrics string) {
	b.t.Helper()
	readers := []any{}
	if metrics != "" {
		host, port, err := net.SplitHostPort(metrics)
		require.NoError(b.t, err)
		number, err := strconv.Atoi(port)
		require.NoError(b.t, err)
		readers = []any{map[string]any{"pull": map[string]any{"exporter": map[string]any{"prometheus": map[string]any{"host": host, "port": number}}}}}
	}
	conf := confmap.NewFromStringMap(map[string]any{
		"extensions": map[string]any{"zpages": map[string]any{"endpoint": "localhost:55679"}, "zpages/unused": map[string]any{"endpoint": "localhost:1"}},
		"exporters": map[string]any{
			"flame_graph":      map[string]any{"endpoint": "0.0.0.0:4040", "tls": map[string]any{"cert_file": "server.pem"}},
			"prometheus/other": map[string]any{"endpoint": "10.0.0.1:8889"},
			"otlp_grpc":        map[string]any{"endpoint": "jaeger:4317"},
		},
		"service": map[string]any{
			"extensions": []any{"zpages"},
			"pipelines": map[string]any{
				"traces":  map[string]any{"receivers": []any{"bytefrog", "otlp"}, "processors": []any{"memory_limiter"}, "exporters": []any{"flame_graph", "otlp_grpc"}},
				"metrics": map[string]any{"receivers": []any{"bytefrog"}, "exporters": []any{"prometheus/other"}},
			},
			"telemetry": map[string]any{"metrics": map[string]any{"level": "normal", "readers": readers}},
		},
	})
	require.NoError(b.t, b.extension.NotifyConfigSnapshot(b.t.Context(), extensioncapabilities.NewConfigSnapshot(conf, nil)))
}

// serveMetrics serves a page of metrics, and returns its address.
func serveMetrics(t *testing.T, page string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/metrics", r.URL.Path)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// rowsOf are the rows of the collector's table, by their headings, with spaces between texts.
func rowsOf(t *testing.T, page string) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for _, row := range elements(t, page, "tr") {
		var words []string
		for n := range row.Descendants() {
			if text := strings.TrimSpace(n.Data); n.FirstChild == nil && n.Data != "br" && text != "" {
				words = append(words, text)
			}
		}
		if len(words) > 1 {
			rows[words[0]] = strings.Join(words[1:], " ")
		}
	}
	return rows
}

func TestTheFirstPageShowsTheCollector(t *testing.T) {
	b := newBed(t)
	b.configure(serveMetrics(t, `# TYPE otelcol_receiver_bytefrog_events_dropped_total counter
otelcol_receiver_bytefrog_events_dropped_total{receiver="bytefrog",reason="permanent"} 1234
otelcol_receiver_bytefrog_events_dropped_total{receiver="bytefrog",reason="shutdown"} 0
# TYPE otelcol_connector_stack_pairing_missing_numbers counter
otelcol_connector_stack_pairing_missing_numbers{connector="stack_pairing"} 5
# TYPE otelcol_extension_memory_budget_usage gauge
otelcol_extension_memory_budget_usage{holder="a"} 1048576
otelcol_extension_memory_budget_usage{holder="b"} 2097152
# TYPE otelcol_extension_memory_budget_limit gauge
otelcol_extension_memory_budget_limit 8388608
# TYPE otelcol_process_uptime counter
otelcol_process_uptime 17
`))
	rows := rowsOf(t, b.get("/"))
	assert.Equal(t, "bytefrog, otlp → memory_limiter → flame_graph, otlp_grpc", rows["traces"])
	assert.Equal(t, "bytefrog → prometheus/other", rows["metrics"])
	assert.Equal(t, "3 of 8 MiB", rows["memory budget"])
	assert.Equal(t, "call events of bytefrog permanent: 1,234 sequence numbers of call events, of the connector stack_pairing: 5", rows["losses"])
	assert.Equal(t, "none", rows["faults"])
}

func TestTheFirstPageLinksToTheOtherPagesOfTheCollector(t *testing.T) {
	b := newBed(t)
	b.configure("127.0.0.1:1")
	var links []string
	for _, a := range elements(t, b.get("/"), "a") {
		if to := attributeOf(a, "href"); strings.Contains(to, "//") {
			links = append(links, to)
		}
	}
	host, _, err := net.SplitHostPort(b.extension.address.String())
	require.NoError(t, err)
	assert.Equal(t, []string{
		"http://" + host + ":1/metrics", "https://" + host + ":4040/", "http://10.0.0.1:8889/metrics",
		"http://" + host + ":55679/debug/pipelinez", "http://" + host + ":55679/debug/extensionz", "http://" + host + ":55679/debug/servicez",
	}, links)
}

func TestTheFirstPageSaysWhyLossesAreNotKnown(t *testing.T) {
	b := newBed(t)
	b.configure("")
	assert.Contains(t, rowsOf(t, b.get("/"))["losses"], "not known: no reader with pull.exporter.prometheus is in service::telemetry::metrics::readers")
	b.configure("127.0.0.1:1")
	assert.Contains(t, rowsOf(t, b.get("/"))["losses"], "connection refused")
	b.configure(serveMetrics(t, "{"))
	assert.Contains(t, rowsOf(t, b.get("/"))["losses"], "not known: read the collector's own metrics: text format parsing error")
	b.configure(serveMetrics(t, ""))
	assert.Equal(t, "none", rowsOf(t, b.get("/"))["losses"])
}

func TestTheFirstPageShowsFaultsUntilTheyEnd(t *testing.T) {
	b := newBed(t)
	b.configure("")
	relay := componentstatus.NewInstanceID(component.MustNewID("lttng_live"), component.KindReceiver, pipeline.NewID(pipeline.SignalTraces))
	b.extension.ComponentStatusChanged(relay, componentstatus.NewRecoverableErrorEvent(errors.New("dial localhost:5344: <refused>")))
	assert.Equal(t, "receiver lttng_live: RecoverableError, dial localhost:5344: <refused>", rowsOf(t, b.get("/"))["faults"])
	b.extension.ComponentStatusChanged(relay, componentstatus.NewEvent(componentstatus.StatusOK))
	assert.Equal(t, "none", rowsOf(t, b.get("/"))["faults"])
}
