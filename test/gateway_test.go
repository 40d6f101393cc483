// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// The numbers of the capture "shop".
const shopCalls, shopEvents = 4_793, 9_628

// Two collectors receive, three pair. Each stream becomes the same spans as in one collector, at
// one of the three. Prometheus has the series of each agent, though all are of one service. The sums
// of the three by function, and by path in profiles, are those of one collector.
func TestTiersMakeTheSpansThatOneCollectorMakes(t *testing.T) {
	t.Parallel()
	const agents = 20
	tt := newTiers(t, 3)
	tt.bytefrog = []string{"service_name: shop", "collection_interval: 500ms"}
	tt.pairSettings["interval: 15s"] = "500ms"
	b := newSumBackend(t)
	tt.pairOverlay = fmt.Sprintf(`
exporters: {otlp_http: {endpoint: %q, compression: none}}
service: {pipelines: {profiles: {receivers: [stack_pairing], exporters: [otlp_http]}}}
`, b.endpoint)
	tt.pairAt(testkit.Address(t), testkit.Address(t), testkit.Address(t))
	for range 2 {
		tt.receive(t.TempDir())
	}
	p := prometheus.Start(t, append(tt.metrics, tt.paired...)...)
	half := newStage(shopEvents / 2)
	f := startFleet(t, agents, tt.agents, openCapture(t, "shop"), half)
	f.at(t, half)
	p.Await(t, `count(count by (instance) (bytefrog_events_total{job="shop"} > 0))`, agents)
	close(half.open)
	f.complete(t)
	tt.awaitAccepted(agents*shopEvents, tt.pairing, 0)
	p.Await(t, `sum(code_function_calls_total{job="shop"})`, agents*shopCalls)
	p.Await(t, `count(count by (collector) (code_function_calls_total{job="shop"}))`, 3)
	want := reference.Spans(openCapture(t, "shop"), defaultRules)
	checkSummed(t, p, functionSumsOf(want), agents)
	tt.stop()

	tt.checkEach(agents)
	b.checkEach(t, want, agents)
}

// checkSummed compares the sums of the metrics by function of some agents with those of one.
func checkSummed(t *testing.T, p *prometheus.Server, of map[string]float64, agents int) {
	t.Helper()
	const program = `{job="shop"}`
	for metric, expression := range map[string]string{
		"calls_total": "code_function_calls_total" + program, "errors_total": "code_function_errors_total" + program,
		"duration_seconds_count": "histogram_count(code_function_duration_seconds" + program + ")",
		"duration_seconds_sum":   "histogram_sum(code_function_duration_seconds" + program + ")",
	} {
		want := map[string]float64{}
		for key, value := range of {
			if name, rest, _ := strings.Cut(key, " "); name == metric {
				function, _, _ := strings.Cut(rest, " ")
				want[function] += float64(agents) * value
			}
		}
		p.AwaitByLabel(t, "sum by (code_function_name) ("+expression+")", "code_function_name", want)
	}
}

// checkEach checks that the profiles of each agent have the calls of the reference.
func (b *sumBackend) checkEach(t *testing.T, want *reference.Result, agents int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Len(t, b.paths, agents)
	stacks := pathsOfSpans(want.Spans, true).stacks()
	for _, paths := range b.paths {
		assertSame(t, stacks, paths)
	}
}

// checkEach checks that each agent's stream became the spans of the reference, at one
// collector, and that each collector has streams.
func (tt *tiers) checkEach(agents int) {
	tt.t.Helper()
	want, seen := reference.Spans(openCapture(tt.t, "shop"), defaultRules), map[string]bool{}
	for _, handedOn := range tt.handedOn(len(tt.pairing)) {
		assert.NotEmpty(tt.t, handedOn, "each pairing collector has streams")
		for stream, e := range handedOn {
			assert.NotContains(tt.t, seen, stream, "a stream is paired by one collector")
			seen[stream] = true
			checkEqual(tt.t, want, e)
		}
	}
	assert.Len(tt.t, seen, agents)
}

// A pairing collector is added while agents run, and one is killed. The streams that move are cut
// there, and none of their calls is paired wrongly. The others are complete. Only the calls that
// were open in the killed collector are lost.
func TestStreamsMoveWithTheSecondTier(t *testing.T) {
	t.Parallel()
	// So many that hardly ever none belongs to the new collector: 1 time in 30,000.
	const agents = 36
	ips, port := loopbacks(t, 4)
	tt := newTiers(t, 4)
	tt.hosts = kit.NewHosts(t, "pairing.test", ips[:3]...)
	tt.resolver = dns("pairing.test", port)
	tt.bytefrog = []string{"keepalive_interval: 500ms"}
	tt.pairSettings["max_wait: 60s"], tt.pairSettings["idle_timeout: 10m"], tt.pairSettings["interval: 15s"] = "3s", "15s", "500ms"
	for _, ip := range ips[:3] {
		tt.pair(net.JoinHostPort(ip, port), "")
	}
	for range 2 {
		tt.receive(t.TempDir())
	}
	tt.awaitPairing(3)
	const third = shopEvents / 3
	adding, killing := newStage(third), newStage(2*third)
	f := startFleet(t, agents, tt.agents, openCapture(t, "shop"), adding, killing)
	f.at(t, adding)
	tt.awaitAccepted(agents*third, tt.pairing, 0)

	tt.pair(net.JoinHostPort(ips[3], port), "")
	tt.hosts.Set(t, ips...)
	tt.awaitPairing(4)
	close(adding.open)
	f.at(t, killing)
	tt.awaitAccepted(agents*2*third, tt.pairing, 0)

	victim, others, lost := tt.kill(1)
	tt.hosts.Set(t, slices.Delete(slices.Clone(ips), victim, victim+1)...)
	tt.awaitPairing(3)
	close(killing.open)
	f.complete(t)
	tt.awaitAccepted(agents*shopEvents, others, lost.events)
	for _, c := range others {
		testkit.Eventually(t, "streams that moved away are idle", func() (bool, string) {
			open := c.Metric(t, pairedOpen)
			return open == 0, fmt.Sprint(open)
		})
	}
	joined := sum(t, others, pairedBreaks, `cause="joined"`)
	truncated := sum(t, others, pairedTruncated)
	assert.Equal(t, truncated, sum(t, others, pairedTruncated, `cause="idle"`), "nothing else truncates")
	for _, loss := range []string{"late_events", "missing_numbers", "dropped_spans", "corrupt_batches", "duplicate_events"} {
		assert.Zero(t, sum(t, others, connectorMetrics+loss), loss)
	}
	counted := tt.awaitCounted(victim)
	tt.pairing = others
	tt.stop()

	all := tt.handedOn(4)
	moves := findMoves(t, all, victim)
	t.Logf("%+v, %v calls were open in the one that was killed", moves, lost.open)
	for collector, calls := range counted {
		spans := 0
		for _, e := range all[collector] {
			spans += len(e.spans)
		}
		assert.EqualValues(t, spans, calls, "calls in the metrics of a collector, some of streams that moved")
	}
	assert.Positive(t, moves.moved)
	assert.Positive(t, moves.stayed)
	assert.EqualValues(t, joined, moves.joined, "a stream that moves begins with a break there")
	assert.EqualValues(t, truncated, moves.truncated)
	assert.EqualValues(t, lost.open, moves.missing, "the calls that were open in the killed collector are lost")
}

// awaitCounted waits until the metrics by function of each collector of the second tier, except a killed one,
// have all calls that it paired, and returns their numbers.
func (tt *tiers) awaitCounted(victim int) map[int]float64 {
	tt.t.Helper()
	counted := map[int]float64{}
	for i, c := range tt.pairing {
		if i == victim {
			continue
		}
		testkit.Eventually(tt.t, "all calls are counted", func() (bool, string) {
			counted[i] = 0
			for _, point := range functionPoint.FindAllStringSubmatch(fetch(tt.t, "http://"+tt.paired[i]+"/metrics"), -1) {
				if value, err := strconv.ParseFloat(point[5], 64); err == nil && point[1] == "calls_total" {
					counted[i] += value
				}
			}
			paired := c.Metric(tt.t, connectorMetrics+"spans")
			return counted[i] == paired, fmt.Sprint(counted[i], paired)
		})
	}
	return counted
}

// lost are the numbers of a collector when it was killed.
type lost struct{ events, open float64 }

// kill kills a collector of the second tier, after it has delivered everything that it has
// finished.
func (tt *tiers) kill(victim int) (_ int, others []*kit.Collector, _ lost) {
	tt.t.Helper()
	c := tt.pairing[victim]
	awaitHandedOn(tt.t, c)
	had := lost{c.Metric(tt.t, pairedEvents), c.Metric(tt.t, pairedOpen)}
	c.Kill()
	return victim, slices.Delete(slices.Clone(tt.pairing), victim, victim+1), had
}

// awaitHandedOn waits until the backend has all spans that a collector has finished.
func awaitHandedOn(t testing.TB, c *kit.Collector) {
	t.Helper()
	testkit.Eventually(t, "finished spans are delivered", func() (bool, string) {
		look := c.Look(t)
		queued, waiting := look.Sum("otelcol_exporter_queue_size"), look.Sum(connectorMetrics+"waiting_events")
		// A finished span counts before it is in the queue. A queue on disk can have more, of a former process.
		finished, sent := look.Sum(connectorMetrics+"spans"), look.Sum(sentSpans)
		return queued == 0 && waiting == 0 && sent >= finished, fmt.Sprint(queued, waiting, finished, sent)
	})
}

// moves counts streams: those that stayed with one collector, those that moved, how many times one
// continued at another, and their truncated or missing calls.
type moves struct{ stayed, moved, joined, truncated, missing int }

// findMoves checks the delivered streams. One that stayed equals that of the reference. One that
// moved has a right part at each collector, and no call twice. The spans of the killed collector
// may have unknown callers.
func findMoves(t *testing.T, handedOn []streams, victim int) (found moves) {
	t.Helper()
	want := reference.Spans(openCapture(t, "shop"), defaultRules)
	parts := map[string][]*exported{}
	for collector, of := range handedOn {
		for stream, e := range of {
			parts[stream] = append(parts[stream], e)
			if collector != victim {
				checkShape(t, e)
			}
		}
	}
	for stream, parts := range parts {
		if len(parts) == 1 {
			found.stayed++
			checkEqual(t, want, parts[0])
			continue
		}
		found.moved++
		found.joined += len(parts) - 1
		calls := map[int64]bool{}
		for _, part := range parts {
			checkCalls(t, want, part)
			for _, s := range part.spans {
				assert.False(t, calls[s.sequence], "call %d of stream %s is there twice", s.sequence, stream)
				calls[s.sequence] = true
				if s.isTruncated {
					found.truncated++
				}
			}
		}
		found.missing += len(want.Spans) - len(calls)
	}
	return found
}

// outageVariable is the length of the second tier's outage in a test, such as 1m, with the shipped
// timeouts. Without it the timeouts are short, and the outage lasts until some tries have failed.
const outageVariable = "CALLBRAID_OUTAGE"

// The second tier is down for a while, in which the agents continue and end, tries fail, and a
// collector of the first tier is killed. All waiting data is on disk, and nothing of it is lost.
func TestAnOutageOfTheSecondTierLosesNothing(t *testing.T) {
	t.Parallel()
	outage, err := time.ParseDuration(cmp.Or(os.Getenv(outageVariable), "0s"))
	require.NoError(t, err, outageVariable)
	const agents, half = 20, shopEvents / 2
	tt := newTiers(t, 3)
	if outage == 0 {
		tt.receiveSettings = shortTimeouts
	}
	tt.pairAt(testkit.Address(t), testkit.Address(t), testkit.Address(t))
	queues := t.TempDir()
	tt.receive(queues)
	tt.receive(t.TempDir())
	away := newStage(half)
	f := startFleet(t, agents, tt.agents, openCapture(t, "shop"), away)
	f.at(t, away)
	tt.awaitAccepted(agents*half, tt.pairing, 0)

	over := time.After(outage)
	for _, c := range tt.pairing {
		awaitHandedOn(t, c) // otherwise it would send again, after the outage, spans that the backend has
		c.Freeze(t)
	}
	close(away.open)
	f.complete(t)
	tt.awaitWaiting(agents)
	tt.restartKilled(queues)
	tt.awaitFailedTries()
	<-over
	for _, c := range tt.pairing {
		c.Thaw(t)
	}
	tt.checkNothingLost(agents)
}

// The second tier isn't there at all, so that each try is refused, until all agents have ended.
func TestASecondTierThatStartsLaterGetsAllSpans(t *testing.T) {
	t.Parallel()
	const agents = 20
	tt := newTiers(t, 3)
	tt.receiveSettings = shortTimeouts
	addresses := []string{testkit.Address(t), testkit.Address(t), testkit.Address(t)}
	tt.resolver = static(addresses...)
	queues := t.TempDir()
	tt.receive(queues)
	tt.receive(t.TempDir())
	startFleet(t, agents, tt.agents, openCapture(t, "shop")).complete(t)
	tt.awaitWaiting(agents)
	tt.restartKilled(queues)
	tt.awaitFailedTries()
	tt.pairAt(addresses...)
	tt.checkNothingLost(agents)
}

// awaitWaiting waits until the first tier has seen all agents end, and checks that something of
// them waits in each.
func (tt *tiers) awaitWaiting(agents int) {
	tt.t.Helper()
	for _, c := range tt.receiving {
		c.AwaitMetric(tt.t, float64(agents/len(tt.receiving)), runsEnded)
		assert.Positive(tt.t, c.Metric(tt.t, "otelcol_exporter_queue_size", `exporter="load_balancing"`), "bytes that wait")
	}
}

// restartKilled kills the first collector of the first tier, whose queue is in a directory, and
// starts another one with that queue.
func (tt *tiers) restartKilled(queues string) {
	tt.t.Helper()
	tt.receiving[0].Kill()
	tt.receiving = tt.receiving[1:]
	tt.receive(queues)
}

// checkNothingLost waits until the second tier has all events, and checks that it knows of no
// loss, and made all calls of them.
func (tt *tiers) checkNothingLost(agents int) {
	tt.t.Helper()
	tt.awaitAccepted(agents*shopEvents, tt.pairing, 0)
	for _, loss := range []string{"breaks", "late_events", "missing_numbers", "truncated_frames"} {
		assert.Zero(tt.t, sum(tt.t, tt.pairing, connectorMetrics+loss), loss)
	}
	tt.stop()
	tt.checkEach(agents)
}

// Spans that a killed pairing collector has finished, and the backend hasn't accepted, remain if
// its queue is on disk, as in docs/scale.md.
func TestFinishedSpansOfAKilledPairingCollectorAreDelivered(t *testing.T) {
	t.Parallel()
	const agents = 3
	jaeger, pairing := testkit.Address(t), testkit.Address(t)
	tt := &tiers{t: t, jaegers: []string{jaeger, jaeger}, resolver: static(pairing)}
	tt.pairSettings = map[string]string{
		"endpoint: localhost:13134":                 "${env:HEALTH}\n  file_storage: {directory: \"${env:CALLBRAID_DATA}\"}",
		"queue_size: 134217728 # 128 MiB":           "134217728\n      storage: file_storage",
		"extensions: [memory_budget, health_check]": "[memory_budget, health_check, file_storage]",
	}
	queues := t.TempDir()
	killed := tt.pair(pairing, queues)
	tt.receive(t.TempDir())
	startFleet(t, agents, tt.agents, openCapture(t, "shop")).complete(t)
	tt.awaitAccepted(agents*shopEvents, tt.pairing, 0)
	// The last spans are on disk when the first tier gets the answer to its last request.
	tt.receiving[0].Stop(t)
	tt.receiving = nil
	assert.Zero(t, killed.Metric(t, pairedOpen), "no call is open")
	killed.Kill()

	backend := spanBackend(t, jaeger)
	tt.pairing = nil
	awaitHandedOn(t, tt.pair(pairing, queues))
	tt.stop()
	backend.Stop(t)
	got := readStreams(t, backend, "spans.bin")
	assert.Len(t, got, agents)
	for _, e := range got {
		checkEqual(t, reference.Spans(openCapture(t, "shop"), defaultRules), e)
	}
}

// spanBackend replaces Jaeger: a collector that accepts spans over OTLP and gRPC and writes them to
// a file.
func spanBackend(t *testing.T, endpoint string) *kit.Collector {
	t.Helper()
	return kit.Start(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {file: %s}
service: {pipelines: {traces: {receivers: [otlp], exporters: [file]}}}
`, endpoint, kit.FileExporter("spans.bin")))
}
