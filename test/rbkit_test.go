// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	protocol "github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Rbkit: captures of real servers, played by agentsim, through the built distribution.

// Metrics of the receiver, as the collector shows them.
const (
	rbkitMessages = "otelcol_receiver_rbkit_messages"
	rbkitEvents   = "otelcol_receiver_rbkit_events"
	rbkitBad      = "otelcol_receiver_rbkit_bad_messages"
	rbkitRestarts = "otelcol_receiver_rbkit_restarts"
	rbkitServers  = "otelcol_receiver_rbkit_servers"
)

// rbkitServer is where a server is played.
type rbkitServer struct{ publish, request, metrics string }

func newRbkitServer(t testing.TB) rbkitServer {
	return rbkitServer{testkit.Address(t), testkit.Address(t), testkit.Address(t)}
}

// client configures a collector that is a client of the server, with pipelines for all
// signals but profiles, and others as text.
func (s rbkitServer) client(receiver, pipelines string) string {
	return rbkitClient{servers: []rbkitServer{s}, receiver: receiver, pipelines: pipelines}.config()
}

// rbkitClient is a collector that is a client of servers, and shows metrics at the address of the
// first of them.
type rbkitClient struct {
	servers []rbkitServer
	// receiver, exporters and pipelines are more of the configuration.
	receiver, exporters, pipelines string
	// spans is the exporter of spans; empty: a file.
	spans string
}

func (c rbkitClient) config() string {
	var servers []string
	for _, s := range c.servers {
		servers = append(servers, fmt.Sprintf("{publish: %q, request: %q}", s.publish, s.request))
	}
	if c.spans == "" {
		c.spans = "file/spans"
	}
	return fmt.Sprintf(`
receivers:
  rbkit:
    servers: [%s]
    reconnect: {initial_interval: 10ms, max_interval: 100ms}
    collection_interval: 100ms
    profile_interval: 100ms
    %s
exporters:
  file/spans: %s
  file/logs: {path: "${env:DIR}/logs.json"}
  file/metrics: {path: "${env:DIR}/metrics.json"}
  file/profiles: {path: "${env:DIR}/profiles.json"}
  prometheus: {endpoint: %q, metric_expiration: 1h}
  %s
service:
  pipelines:
    traces: {receivers: [rbkit], exporters: [%s]}
    logs: {receivers: [rbkit], exporters: [file/logs]}
    metrics: {receivers: [rbkit], exporters: [prometheus, file/metrics]}
    %s
`, strings.Join(servers, ", "), c.receiver, kit.FileExporter("spans.bin"), c.servers[0].metrics, c.exporters, c.spans, c.pipelines)
}

// playedRbkit is a server that agentsim plays.
type playedRbkit struct {
	output *testkit.Output
	stop   func()
}

// play plays a server until it is stopped, or the test ends.
func (s rbkitServer) play(t *testing.T, arguments ...string) playedRbkit {
	t.Helper()
	arguments = append([]string{"rbkit"}, append(arguments, "--publish", s.publish, "--request", s.request, "--linger", "1h", "--verbose")...)
	command := exec.Command(kit.AgentSim(t), arguments...)
	output := &testkit.Output{}
	command.Stdout, command.Stderr = output, output
	require.NoError(t, command.Start())
	stop := sync.OnceFunc(func() {
		_ = command.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = command.Wait()
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("agentsim said:\n%s", output)
		}
	})
	return playedRbkit{output, stop}
}

// scraped is the collector's page for Prometheus.
func (s rbkitServer) scraped(t testing.TB) string {
	t.Helper()
	response, err := http.Get("http://" + s.metrics + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// sumOf adds up the series of a metric that have a label.
func sumOf(t testing.TB, text, name, label string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, label) {
			var value float64
			_, err := fmt.Sscan(line[strings.LastIndex(line, "} ")+2:], &value)
			require.NoError(t, err, line)
			sum += value
		}
	}
	return sum
}

func rbkitCapture(name string) string {
	return filepath.Join("..", "testdata", "rbkit", name+".zip")
}

func TestRbkitServersOfBothDialectsAreReceived(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		messages, events, spans  int
		created, live, allocated float64
	}{
		"released-30s":   {messages: 132, events: 85_542, spans: 15, created: 45_662, live: 16_751},
		"documented-30s": {messages: 24, events: 6_193, spans: 21, live: 17_120, allocated: 56_274},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newRbkitServer(t)
			c := kit.Start(t, server.client("memory_profile: true", ""))
			server.play(t, "replay", rbkitCapture(name))
			c.AwaitMetric(t, float64(want.messages), rbkitMessages)
			assert.Equal(t, float64(want.events), c.Metric(t, rbkitEvents))
			testkit.Eventually(t, "the metrics to be shown", func() (bool, string) {
				text := server.scraped(t)
				return sumOf(t, text, "ruby_object_created_total", "") == want.created &&
					sumOf(t, text, "ruby_heap_live_objects", "") == want.live &&
					sumOf(t, text, "ruby_allocation_count_total", "") == want.allocated &&
					sumOf(t, text, "ruby_gc_count_total", "") > 0, text
			})
			c.Stop(t)
			assert.Len(t, readSpans(t, c), want.spans)
			said := map[string]int{}
			eachLog(t, c, func(_ pcommon.Resource, r plog.LogRecord) { said[r.EventName()]++ })
			assert.Equal(t, map[string]int{"rbkit.server.connected": 1, "rbkit.dump": 1, "rbkit.server.gone": 1}, said)
		})
	}
}

func TestRbkitProfilesNeedNoFlag(t *testing.T) {
	t.Parallel()
	const pipeline = "profiles: {receivers: [rbkit], exporters: [file/profiles]}"
	server := newRbkitServer(t)
	c := kit.Start(t, server.client("", pipeline))
	server.play(t, "replay", rbkitCapture("documented-30s"))
	c.AwaitMetric(t, 24, rbkitMessages)
	c.Stop(t)
	values := map[string]int64{}
	for _, profiles := range readProfiles(t, c) {
		for _, p := range profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			for _, s := range p.Samples().All() {
				values[profiles.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))] += s.Values().At(0)
			}
		}
	}
	assert.Equal(t, map[string]int64{"samples": 6_145, "alloc_objects": 56_274, "alloc_space": 2_247_480}, values)
	assert.Len(t, readSpans(t, c), 21, "the other signals are the same")
}

func TestRbkitServersGetTheirCommandsAndAreRestored(t *testing.T) {
	t.Parallel()
	server := newRbkitServer(t)
	c := kit.Start(t, server.client("memory_profile: true\n    cpu_profile: true\n    clock: cpu\n    objectspace_snapshot_interval: 100ms", ""))
	played := server.play(t, "load", "--rate", "50", "--events", "100", "--dump-objects", "1500")
	c.AwaitMetric(t, 2, "otelcol_receiver_rbkit_dumps", `objects="complete"`)
	// A restarted server has lost its state.
	played.stop()
	played = server.play(t, "load", "--rate", "50", "--events", "100", "--dump-objects", "1500")
	c.AwaitMetric(t, 1, rbkitRestarts)
	c.AwaitMetric(t, 1, rbkitServers)
	c.AwaitMetric(t, 4, "otelcol_receiver_rbkit_dumps", `objects="complete"`)
	c.Stop(t)
	played.stop() // its output is complete
	var commands []string
	for line := range strings.Lines(played.output.String()) {
		_, command, is := strings.Cut(strings.TrimSpace(line), "command: ")
		if is && command != "handshake" && command != "objectspace_snapshot" {
			commands = append(commands, command)
		}
	}
	assert.Equal(t, []string{"start_memory_profile", "use_cpu_time", "start_cpu_profiling", "stop_memory_profile", "stop_cpu_profiling"}, commands)
}

func TestGarbageOfOneRbkitServerDoesNotDisturbOthers(t *testing.T) {
	t.Parallel()
	server := newRbkitServer(t)
	c := kit.Start(t, server.client("timeout: 2s", "")) // also for each part of a message
	server.play(t, "replay", "--garbage", "10", "--mute", rbkitCapture("released-30s"))
	c.AwaitMetric(t, 13, rbkitBad)
	c.AwaitMetric(t, 85_542, rbkitEvents)
	awaitSaid(t, c, saidSilent, 1)
	c.Stop(t)
	assert.Len(t, readSpans(t, c), 15)
}

// readProfiles are the profiles that a collector wrote.
func readProfiles(t *testing.T, c *kit.Collector) (all []pprofile.Profiles) {
	t.Helper()
	eachLine(t, filepath.Join(c.Dir, "profiles.json"), func(line json.RawMessage) {
		profiles, err := new(pprofile.JSONUnmarshaler).UnmarshalProfiles(line)
		require.NoError(t, err)
		all = append(all, profiles)
	})
	return all
}

// serve serves what a test publishes, until the test ends.
func (s rbkitServer) serve(t testing.TB) *rbkitserver.Server {
	t.Helper()
	publish, err := net.Listen("tcp", s.publish)
	require.NoError(t, err)
	request, err := net.Listen("tcp", s.request)
	require.NoError(t, err)
	server := rbkitserver.New(rbkitserver.Options{})
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, publish, request) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-served)
	})
	return server
}

// The largest message that was seen of a real server had 415,000 events and 10 MB.
const largeMessage = 415_000

// largeMessages are messages of that many events, about objects that stay, and about objects that
// are freed immediately.
var largeMessages = map[string]func(into *protocol.Collection, i uint64) error{
	"live": func(into *protocol.Collection, i uint64) error {
		return into.Created(1, 20*(1+i), fmt.Appendf(nil, "Shop::Class%d", i%50))
	},
	"gone": func(into *protocol.Collection, i uint64) error {
		if i%2 == 1 {
			return into.Destroyed(1, 20*i)
		}
		return into.Created(1, 20*(1+i), fmt.Appendf(nil, "Shop::Class%d", i%50))
	},
}

// memoryOf is the additional peak memory of a collector for a message of largeMessage events, in
// bytes.
func memoryOf(t testing.TB, add func(into *protocol.Collection, i uint64) error) (more uint64) {
	t.Helper()
	const least = 10_000_000
	made := protocol.NewCollection(protocol.Released)
	for i := range uint64(largeMessage) {
		require.NoError(t, add(made, i))
	}
	message := made.AppendTo(nil, 1, 0)
	require.GreaterOrEqual(t, len(message), least)

	server := newRbkitServer(t)
	s := server.serve(t)
	c := kit.Start(t, server.client("", ""))
	c.AwaitMetric(t, 1, rbkitServers)
	testkit.Eventually(t, "it has subscribed", func() (bool, string) { return s.Subscribers() == 1, "" })
	c.ResetPeakMemory(t)
	idle := c.PeakMemory(t)
	s.Publish(message)
	c.AwaitMetric(t, largeMessage, rbkitEvents)
	testkit.Eventually(t, "the metrics are shown", func() (bool, string) {
		shown := sumOf(t, server.scraped(t), "rbkit_events_total", "")
		return shown == largeMessage, fmt.Sprint(shown)
	})
	more = c.PeakMemory(t) - idle
	c.Stop(t)
	return more
}

func TestALargeRbkitMessageNeedsLittleMemory(t *testing.T) {
	const most = 64 << 20
	for what, add := range largeMessages {
		more := memoryOf(t, add)
		t.Logf("%s: %d MiB above idle", what, more>>20)
		assert.Less(t, more, uint64(most), what)
	}
}

// BenchmarkLargeRbkitMessage measures the memory of the largest messages.
func BenchmarkLargeRbkitMessage(b *testing.B) {
	for what, add := range largeMessages {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(memoryOf(b, add))/(1<<20), "peak-MiB")
			}
		})
	}
}
