// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Two tiers of the shipped configurations, and their surroundings.

// tiers are two tiers of collectors with shipped configurations, at other addresses.
type tiers struct {
	t testing.TB
	// bytefrog has further settings of the receiver of that name. receiveSettings and pairSettings
	// are changed settings of the first and the second tier.
	bytefrog                      []string
	receiveSettings, pairSettings map[string]string
	// receiveOverlay and pairOverlay are overlays of the configurations; empty: none.
	receiveOverlay, pairOverlay string
	// resolver is the resolver of the first tier for the second, as in the configuration.
	resolver string
	hosts    *kit.Hosts

	receiving []*kit.Collector
	// agents, metrics: where agents connect to each of the first tier, and where it shows metrics.
	agents, metrics []string
	pairing         []*kit.Collector
	// paired are the addresses where the second tier shows metrics.
	paired []string

	// backend replaces Jaeger. Each collector of the second tier has an address and a file of its
	// own there, so that the sender of each span is known; the first tier has one, too.
	backend *kit.Collector
	jaegers []string
}

// spansFile is the file with the exported spans of a collector of the second tier.
func spansFile(pairing int) string { return fmt.Sprintf("spans-%d.bin", pairing) }

// newTiers starts the backend, for so many pairing collectors.
func newTiers(t testing.TB, pairing int) *tiers {
	t.Helper()
	return newTiersTo(t, pairing, func(i int) string { return fmt.Sprintf("file/%d: %s", i, kit.FileExporter(spansFile(i))) })
}

// newTiersTo is newTiers with an exporter of the backend's for each collector.
func newTiersTo(t testing.TB, pairing int, exporter func(i int) string) *tiers {
	t.Helper()
	tt := &tiers{t: t, pairSettings: map[string]string{}}
	var receivers, exporters, pipelines strings.Builder
	for i := range pairing + 1 {
		tt.jaegers = append(tt.jaegers, testkit.Address(t))
		fmt.Fprintf(&receivers, "  otlp/%d: {protocols: {grpc: {endpoint: %q}}}\n", i, tt.jaegers[i])
		fmt.Fprintf(&exporters, "  %s\n", exporter(i))
		fmt.Fprintf(&pipelines, "    traces/%d: {receivers: [otlp/%d], exporters: [%s]}\n", i, i, exporterName(exporter(i)))
	}
	tt.backend = kit.Start(t, fmt.Sprintf("receivers:\n%sexporters:\n%sservice:\n  pipelines:\n%s", &receivers, &exporters, &pipelines))
	return tt
}

// slowBackend is the second tier's timeout for the backend, which shares a machine with all
// collectors. Spans that are sent again because it was slow would be there twice.
const slowBackend = "\n    timeout: 1m"

// pair starts another collector of the second tier. Where its settings have a queue on disk,
// it is in the directory.
func (tt *tiers) pair(address, data string) *kit.Collector {
	tt.t.Helper()
	metrics := testkit.Address(tt.t)
	settings := map[string]string{
		"endpoint: localhost:13134": "${env:HEALTH}", "port: 8887": "${env:METRICS_PORT}",
		"endpoint: localhost:4320": address, "endpoint: localhost:8890": metrics, "stack_pairing:": allAttributes,
		"endpoint: localhost:4317": tt.jaegers[len(tt.pairing)] + slowBackend,
	}
	maps.Copy(settings, tt.pairSettings)
	c := kit.Start(tt.t, tt.laidOver(shipped(tt.t, "gateway-pair.yaml", settings), tt.pairOverlay), "CALLBRAID_DATA="+data)
	tt.pairing, tt.paired = append(tt.pairing, c), append(tt.paired, metrics)
	return c
}

// pairAt starts collectors of the second tier at addresses, which the first will know.
func (tt *tiers) pairAt(addresses ...string) {
	tt.t.Helper()
	tt.resolver = static(addresses...)
	for _, address := range addresses {
		tt.pair(address, "")
	}
}

// unusedReceivers are settings of the shipped receivers except bytefrog, without any agents.
func unusedReceivers(t testing.TB) map[string]string {
	t.Helper()
	return map[string]string{
		"endpoint: localhost:5344": testkit.Address(t), "endpoint: localhost:5360": "localhost:0",
		"port_files: [/var/run/lttng/agent.port]": "[]",
		"publish: localhost:5555":                 testkit.Address(t), "request: localhost:5556": testkit.Address(t),
		"endpoint: localhost:3658": testkit.Address(t),
	}
}

// receive starts another collector of the first tier, with its queue in a directory.
func (tt *tiers) receive(data string) *kit.Collector {
	tt.t.Helper()
	agents, metrics := testkit.Address(tt.t), testkit.Address(tt.t)
	tt.agents, tt.metrics = append(tt.agents, agents), append(tt.metrics, metrics)
	settings := unusedReceivers(tt.t)
	maps.Copy(settings, map[string]string{
		"endpoint: localhost:8765":  strings.Join(append([]string{agents}, tt.bytefrog...), "\n    "),
		"endpoint: localhost:13135": "${env:HEALTH}", "port: 8886": "${env:METRICS_PORT}", "endpoint: localhost:8889": metrics,
		"endpoint: localhost:4317": tt.jaegers[len(tt.jaegers)-1],
	})
	maps.Copy(settings, tt.receiveSettings)
	configuration := shipped(tt.t, "gateway-receive.yaml", settings)
	const resolver = "static:\n        hostnames: [localhost:4320]"
	require.Equal(tt.t, 1, strings.Count(configuration, resolver))
	configuration = strings.Replace(configuration, resolver, tt.resolver, 1)
	c := kit.StartGateway(tt.t, tt.hosts, tt.laidOver(configuration, tt.receiveOverlay), "CALLBRAID_DATA="+data)
	tt.receiving = append(tt.receiving, c)
	return c
}

// laidOver is a configuration with another one over it, if that isn't empty.
func (tt *tiers) laidOver(configuration, overlay string) string {
	tt.t.Helper()
	if overlay == "" {
		return configuration
	}
	merged := map[string]any{}
	for _, text := range []string{configuration, overlay} {
		var document map[string]any
		require.NoError(tt.t, yaml.Unmarshal([]byte(text), &document))
		lay(merged, document)
	}
	text, err := yaml.Marshal(merged)
	require.NoError(tt.t, err)
	return string(text)
}

// lay lays a configuration over another one as the Collector does with a second --config: maps are
// merged, and everything else is replaced, lists too.
func lay(under, over map[string]any) {
	for key, value := range over {
		more, isMap := value.(map[string]any)
		if inner, ok := under[key].(map[string]any); ok && isMap {
			lay(inner, more)
			continue
		}
		under[key] = value
	}
}

// static is a resolver that knows addresses.
func static(addresses ...string) string {
	return "static: {hostnames: [" + strings.Join(addresses, ", ") + "]}"
}

// dns is a resolver that asks for a name's addresses every second; all have one port.
func dns(name, port string) string {
	return fmt.Sprintf("dns: {hostname: %s, port: %q, interval: 1s}", name, port)
}

// loopbacks are that many addresses of this machine with one port.
func loopbacks(t testing.TB, n int) (ips []string, port string) {
	t.Helper()
	for range 100 {
		_, port, err := net.SplitHostPort(testkit.Address(t))
		require.NoError(t, err)
		for i := range n {
			ips = append(ips, "127.0.0."+strconv.Itoa(i+1))
		}
		if !slices.ContainsFunc(ips, func(ip string) bool { return !isFree(net.JoinHostPort(ip, port)) }) {
			return ips, port
		}
		ips = nil
	}
	t.Fatalf("expected a port that is free at %d addresses from 127.0.0.1 on, got none", n)
	return nil, ""
}

func isFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// shortTimeouts are settings of the first tier with a tenth of the shipped timeouts and pauses.
var shortTimeouts = map[string]string{
	"would make that worse.\n    timeout: 30s": "3s", "otlp:\n        timeout: 30s": "\n        timeout: 3s",
	"initial_interval: 1s": "100ms", "max_interval: 5s": "500ms",
}

// awaitFailedTries waits until each collector of the first tier has ended some tries.
func (tt *tiers) awaitFailedTries() {
	tt.t.Helper()
	for _, c := range tt.receiving {
		c.AwaitMetric(tt.t, 3, "otelcol_loadbalancer_backend_outcome", `success="false"`)
	}
}

// sum adds up a metric of some collectors.
func sum(t testing.TB, collectors []*kit.Collector, metric string, labels ...string) (all float64) {
	t.Helper()
	for _, c := range collectors {
		all += c.Metric(t, metric, labels...)
	}
	return all
}

// awaitPairing waits until the first tier knows that many collectors of the second.
func (tt *tiers) awaitPairing(n int) {
	tt.t.Helper()
	for _, c := range tt.receiving {
		testkit.Eventually(tt.t, fmt.Sprintf("%d pairing collectors are known", n), func() (bool, string) {
			known := c.Metric(tt.t, "otelcol_loadbalancer_num_backends")
			return known == float64(n), fmt.Sprint(known)
		})
	}
}

// Metrics of the connector in the second tier. duplicateEvents are counted separately from the accepted events.
const (
	pairedEvents    = connectorMetrics + "events"
	duplicateEvents = connectorMetrics + "duplicate_events"
	pairedOpen      = connectorMetrics + "open_frames"
	pairedTruncated = connectorMetrics + "truncated_frames"
	pairedBreaks    = connectorMetrics + "breaks"
)

// awaitAccepted waits until collectors of the second tier have accepted so many events, together with
// those that others had accepted.
func (tt *tiers) awaitAccepted(events int, pairing []*kit.Collector, others float64) {
	tt.t.Helper()
	testkit.Eventually(tt.t, fmt.Sprintf("%d events are accepted", events), func() (bool, string) {
		taken, twice := sum(tt.t, pairing, pairedEvents)+others, sum(tt.t, pairing, duplicateEvents)
		return taken-twice == float64(events), fmt.Sprint(taken, twice)
	})
}

// handedOn are the spans that each of so many collectors of the second tier has delivered. All must
// have ended. The backend ends with it.
func (tt *tiers) handedOn(pairing int) (of []streams) {
	tt.t.Helper()
	tt.backend.Stop(tt.t)
	for i := range pairing {
		of = append(of, readStreams(tt.t, tt.backend, spansFile(i)))
	}
	return of
}

// stop ends both tiers in order. At its end a collector tries only once to send waiting data, for
// which a busy machine may be too slow: so stop waits until no data waits.
func (tt *tiers) stop() {
	tt.t.Helper()
	for _, c := range tt.pairing {
		awaitHandedOn(tt.t, c)
	}
	for _, c := range slices.Concat(tt.receiving, tt.pairing) {
		c.Stop(tt.t)
	}
}
