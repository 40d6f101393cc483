// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/dashboard"
	"github.com/callbraid/callbraid/test/kit/jaeger"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// All tracers at the same time send through config/jaeger-prometheus.yaml, as it is shipped, to a
// real Jaeger and a real Prometheus. The tests ask the APIs of these.

// sentSpans is the collector's own metric of the spans that its exporters have delivered.
const sentSpans = "otelcol_exporter_sent_spans"

// backends are a collector between all tracers and a Jaeger, and where a Prometheus finds it.
type backends struct {
	collector *kit.Collector
	jaeger    *jaeger.Server

	// Where agents are, and where they and Prometheus find the collector.
	bytefrog, relay, portFile, metrics string
	rbkit                              rbkitServer
	greys                              greysServer
	arthas                             arthasServer
}

// startBackends starts both, with config/jaeger-prometheus.yaml. Only addresses and the interval of
// the connector are changed. It keeps all traces, because the captures are played faster than their
// programs ran.
func startBackends(t *testing.T, version jaeger.Version, interval string) *backends {
	t.Helper()
	b := &backends{
		jaeger: jaeger.Start(t, version), bytefrog: testkit.Address(t), relay: testkit.Address(t),
		metrics: testkit.Address(t), portFile: filepath.Join(t.TempDir(), "agent.port"), rbkit: newRbkitServer(t), greys: newGreysServer(t),
		arthas: newArthasServer(t),
	}
	b.collector = kit.Start(t, shipped(t, "jaeger-prometheus.yaml", map[string]string{
		"endpoint: localhost:13135": "${env:HEALTH}", "port: 8887": "${env:METRICS_PORT}", "endpoint: localhost:8765": b.bytefrog, "endpoint: localhost:5344": b.relay,
		"endpoint: localhost:5360": "localhost:0", "port_files: [/var/run/lttng/agent.port]": "[" + b.portFile + "]",
		"publish: localhost:5555": b.rbkit.publish, "request: localhost:5556": b.rbkit.request,
		"endpoint: http://localhost:8563": b.arthas.url(), "endpoint: localhost:3658": b.greys.endpoint, "endpoint: localhost:4317": b.jaeger.OTLP,
		"endpoint: localhost:8889": b.metrics, "stack_pairing:": allAttributes, "interval: 15s": interval, "max_spans_per_second: 20000": "0",
	}), "CALLBRAID_DATA="+t.TempDir())
	return b
}

// The simulated tracers.
var (
	// playedRuns are the captures of Bytefrog. The calls of the second end within seven seconds, so
	// that Prometheus sees their numbers grow.
	playedRuns = map[string]replay.Options{"shop": {}, "suspend": {Speed: 0.3}}
	// playedSessions are the captures of LTTng.
	playedSessions = []string{"jul1", "cygok"}
	// The time of each garbage collection of playedRuby, and that of its marking, in milliseconds.
	playedCollections, playedMarks = []float64{71, 2, 914, 4869, 7}, []float64{2, 2, 0, 0, 3}
)

const (
	playedRuby = "released-30s"
	// A Greys server has these in its process.
	playedClasses, playedMethods = 10, 100
	// An Arthas server has the same number of classes and methods, in this package. playedLoaded are all classes of its JVM.
	stockPackage = "com.example.stock"
	playedLoaded = 5575
)

// playedMethodsOf are the lives of the servers that report methods.
type playedMethodsOf struct{ greys, arthas []greysLife }

// play plays every tracer, and waits until the collector has all data, and Prometheus the data that
// disappears. It returns the calls in the processes of the Greys and the Arthas server.
func (b *backends) play(t *testing.T, numbers *numbers) playedMethodsOf {
	t.Helper()
	// Its classes have other names than those of the Greys server.
	arthas := b.arthas.play(t, "--rate", "50", "--failures", "0.2", "--package", stockPackage)
	greys := b.greys.play(t, "--protocol", "console", "--rate", "50", "--failures", "0.2", "--speed", "20", "--end-delay", "20ms")
	b.rbkit.play(t, "replay", rbkitCapture(playedRuby))
	playLogAgent(t, b.portFile)
	for name, options := range playedRuns {
		network := &unhurried{t: t, collector: b.collector, endpoint: b.bytefrog}
		agent{endpoint: b.bytefrog, capture: name, replay: options, dial: network.dial()}.complete(t)
	}
	c := b.collector
	for i, name := range playedSessions {
		t.Run("session "+name, func(t *testing.T) {
			relayDaemon(t, b.relay, lttngCapture(name)) // until the end of this test
			awaitClosed(t, c, i+1)
		})
	}
	c.AwaitMetric(t, float64(len(playedRuns)), runsEnded)
	c.AwaitMetric(t, float64(len(openRbkit(t, playedRuby).Messages)), rbkitMessages)
	c.AwaitMetric(t, 1, "otelcol_receiver_greys_commands", `outcome="ended"`)
	// Data that a server has only while it runs must be scraped before its end.
	numbers.Await(t, `greys_matched_methods{greys_command="monitor"}`, playedMethods)
	numbers.Await(t, "count(java_method_calls_total > 0 and on () java_method_duration_min_seconds) > bool 0", 1)
	numbers.Await(t, "jvm_class_count", playedLoaded)
	numbers.Await(t, `count(java_method_calls_total{code_function_name=~"`+stockPackage+`.*"} > 0)`, playedMethods)
	c.AwaitMetric(t, limitOfTrees, "otelcol_receiver_arthas_results")
	greys.stop()
	arthas.stop()
	return playedMethodsOf{greys.lives(), arthas.lives()}
}

// awaitSent waits until Jaeger has accepted all spans, and returns their number.
func (b *backends) awaitSent(t *testing.T) (sent float64) {
	t.Helper()
	testkit.Eventually(t, "all spans are sent", func() (bool, string) {
		look := b.collector.Look(t)
		made := look.Sum(connectorMetrics + "spans")
		for _, receiver := range []string{"rbkit", "greys", "arthas"} { // their spans need no pairing
			made += look.Sum("otelcol_receiver_accepted_spans", fmt.Sprintf("receiver=%q", receiver))
		}
		sent = look.Sum(sentSpans)
		return sent == made, fmt.Sprint(sent, made)
	})
	return sent
}

// playLogAgent plays an agent of LTTng in a Java program, which finds the collector by its
// port file, until the end of the test.
func playLogAgent(t *testing.T, portFile string) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	agent := logagent.New(logagent.Options{PortFile: portFile, PID: unusedPID, Loggers: []string{"com.example.shop", "org.example.till"}})
	go func() { ended <- agent.Run(ctx) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-ended)
	})
}

// receiverMetadata returns the paths of metadata.yaml of the project's receivers in the distribution.
func receiverMetadata(t *testing.T) (paths []string) {
	t.Helper()
	var manifest struct{ Receivers []struct{ Import string } }
	text, err := os.ReadFile("../builder-config.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &manifest))
	for _, r := range manifest.Receivers {
		if r.Import != "" {
			paths = append(paths, filepath.Join("..", "receiver", filepath.Base(r.Import), "metadata.yaml"))
		}
	}
	require.NotEmpty(t, paths)
	return paths
}

func TestTheConfigurationForJaegerAndPrometheusHasEveryReceiverOfRunningPrograms(t *testing.T) {
	var ours []string
	for _, path := range receiverMetadata(t) {
		var metadata struct{ Type string }
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &metadata))
		ours = append(ours, metadata.Type)
	}
	const ofRecordings = "ctf_file" // it has a configuration of its own
	require.Contains(t, ours, ofRecordings)
	ours = slices.DeleteFunc(ours, func(receiver string) bool { return receiver == ofRecordings })
	config, _ := readConfig(t, "../config/jaeger-prometheus.yaml")
	received := map[string]bool{}
	for _, pipeline := range config.Service.Pipelines {
		for _, id := range pipeline.Receivers {
			received[componentType(id)] = true
		}
	}
	delete(received, pairing)
	for _, of := range ours {
		assert.True(t, received[of], "%s is in no pipeline", of)
	}
	assert.Len(t, received, len(ours))
}

// portsOfJaeger are the default ports of Jaeger 2 (its all-in-one.yaml), except the one for spans.
// 8888 and 13133 are the Collector's own.
var portsOfJaeger = []string{"4318", "5778", "5779", "8888", "9411", "13132", "13133", "14250", "14268", "16685", "16686", "27777", "27778"}

func TestTheConfigurationForJaegerAndPrometheusHasPortsBesideThoseOfJaeger(t *testing.T) {
	text, err := os.ReadFile("../config/jaeger-prometheus.yaml")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^ +port: \d+$`, string(text), "the collector's own metrics have a port of their own")
	for _, of := range regexp.MustCompile(`(?m)^ +(?:endpoint: localhost:|port: )(\d+)$`).FindAllStringSubmatch(string(text), -1) {
		assert.NotContains(t, portsOfJaeger, of[1])
	}
}

func TestJaeger1HasTheDataOfEveryTracer(t *testing.T) {
	t.Parallel()
	haveDataOfEveryTracer(t, jaeger.V1)
}

func TestJaeger2AndPrometheusHaveTheDataOfEveryTracer(t *testing.T) {
	t.Parallel()
	haveDataOfEveryTracer(t, jaeger.V2)
}

func haveDataOfEveryTracer(t *testing.T, version jaeger.Version) {
	t.Helper()
	b := startBackends(t, version, "2s")
	numbers := &numbers{prometheus.Start(t, b.metrics), b.collector}
	own := prometheus.Start(t, strings.TrimSuffix(strings.TrimPrefix(b.collector.MetricsURL(), "http://"), "/metrics"))
	lives := b.play(t, numbers)
	// Once is enough: which Jaeger it is doesn't matter to Prometheus.
	if version == jaeger.V2 {
		t.Run("metrics", func(t *testing.T) { numbers.check(t, lives) })
		t.Run("calls of methods", numbers.checkCalls)
		t.Run("dashboards", func(t *testing.T) { dashboard.Check(t, "../packaging/grafana", numbers.Server, own) })
		t.Run("pages", numbers.checkPages)
	}
	sent := b.awaitSent(t)
	b.collector.Stop(t)
	spans := allOf(t, b.jaeger, sent)
	t.Run("spans", func(t *testing.T) { spans.check(t, lives) })
	t.Run("exemplars", func(t *testing.T) { numbers.checkExemplars(t, spans) })
	assert.NotContains(t, strings.ToLower(b.collector.Log()), "panic")
}

// The begin of a Maven build is one call of main, and several traces by the default configuration. From the trace
// that a user finds first, links lead to those of the callers, and to main.
func TestTracesOfAMavenBuildAreSmallAndLinked(t *testing.T) {
	t.Parallel()
	b := startBackends(t, jaeger.V2, "15s")
	run := reference.Spans(openCapture(t, mavenBegin), defaultRules)
	agent{endpoint: b.bytefrog, capture: mavenBegin}.complete(t)
	b.collector.AwaitMetric(t, float64(len(run.Spans)), sentSpans)
	b.collector.Stop(t)

	latest := b.jaeger.Search(t, "unknown_service:java", 1)
	require.Len(t, latest, 1)
	assert.Empty(t, latest[0].AllWarnings())
	e := fetchSmall(t, b.jaeger, latest[0].ID, run)
	hops := 0
	for from := linked(e); from != nil; from = linked(e) {
		hops++
		require.Less(t, hops, run.Traces, "links lead in a circle")
		e = fetchSmall(t, b.jaeger, from.links[0].trace.String(), run)
		to := slices.IndexFunc(e.spans, func(s span) bool { return s.id == from.links[0].id })
		require.GreaterOrEqual(t, to, 0, "%s: its link leads to no span", from.name)
		assert.Equal(t, run.Spans[from.sequence].Parent, e.spans[to].sequence)
	}
	assert.Positive(t, hops)
	root := slices.IndexFunc(e.spans, func(s span) bool { return s.parent.IsEmpty() })
	assert.Equal(t, "Launcher.main", e.spans[root].name)
}
