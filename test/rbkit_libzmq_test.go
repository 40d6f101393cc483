// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	protocol "github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/rbkit"
)

// Rbkit with libzmq, which real servers have: captures of real servers, published by it,
// through the built distribution.

const (
	rbkitLost     = "otelcol_receiver_rbkit_messages_lost"
	rbkitFailures = "otelcol_receiver_rbkit_connection_failures"
	rbkitDumps    = "otelcol_receiver_rbkit_dumps"
)

func openRbkit(t *testing.T, name string) *capture.Capture {
	t.Helper()
	c, err := capture.Open(rbkitCapture(name))
	require.NoError(t, err)
	return c
}

// start starts a server with libzmq whose hello is that of a capture.
func (s rbkitServer) start(t *testing.T, of *capture.Capture) *rbkit.Server {
	t.Helper()
	return rbkit.Start(t, s.options(of))
}

func (s rbkitServer) options(of *capture.Capture) rbkit.Options {
	return rbkit.Options{Publish: s.publish, Request: s.request, Hello: rbkitserver.Hello(of)}
}

// awaitSubscriber waits until a collector receives the messages of a server.
func awaitSubscriber(t *testing.T, c *kit.Collector, played *rbkit.Server) {
	t.Helper()
	before := c.Metric(t, rbkitMessages)
	played.AwaitSubscriber(t, func() bool { return c.Metric(t, rbkitMessages) > before })
}

// eventsOf counts the events of messages by the numbers of their types, as the reference
// of the capture has them.
func eventsOf(messages ...capture.Message) (all float64, byType map[uint64]float64) {
	byType = map[uint64]float64{}
	for _, m := range messages {
		for eventType, n := range m.Events {
			byType[eventType] += float64(n)
			all += float64(n)
		}
	}
	return all, byType
}

// Each message is counted with all its events when it has arrived, and the exporters have all
// events.
func TestRbkitMessagesOfLibzmqArriveWhole(t *testing.T) {
	t.Parallel()
	for name, types := range map[string]struct{ created, destroyed, mark, sweep, sample, dump uint64 }{
		"released-30s": {created: 0, destroyed: 1, mark: 3, sweep: 4, sample: 9, dump: 5},
		// This dialect has no objects that are created and destroyed.
		"documented-30s": {created: 100, destroyed: 100, mark: 2, sweep: 3, sample: 8, dump: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, played := newRbkitServer(t), openRbkit(t, name)
			c := kit.Start(t, server.client("", ""))
			s := server.start(t, played)
			awaitSubscriber(t, c, s)
			for i, m := range played.Messages {
				s.Publish(m.Data)
				events, _ := eventsOf(played.Messages[:i+1]...)
				c.AwaitMetric(t, events, rbkitEvents)
				require.Equal(t, events, c.Metric(t, rbkitEvents), "message %s", m.Name)
			}
			all, byType := eventsOf(played.Messages...)
			sweeps := byType[types.sweep] - c.Metric(t, "otelcol_receiver_rbkit_gc_unpaired", `missing="start"`)
			testkit.Eventually(t, "the exporter shows all events", func() (bool, string) {
				text := server.scraped(t)
				got := map[string]float64{}
				for name, want := range map[string]float64{
					"rbkit_events_total": all, "rbkit_cpu_samples_total": byType[types.sample],
					"ruby_object_created_total": byType[types.created], "ruby_object_destroyed_total": byType[types.destroyed],
					"ruby_gc_mark_phase_duration_seconds_count": byType[types.mark], "ruby_gc_cycle_duration_seconds_count": sweeps,
				} {
					if sum := sumOf(t, text, name, ""); sum != want {
						got[name] = sum
					}
				}
				return len(got) == 0, fmt.Sprint(got)
			})
			assert.Zero(t, c.Metric(t, rbkitLost))
			c.Stop(t)
			assert.Len(t, readSpans(t, c), 3*int(sweeps))
			dumps := dumpsOf(t, c)
			require.Len(t, dumps, 1)
			dumps[0].checkComplete(t, int(byType[types.dump]))
		})
	}
}

// rbkitDump is the content of a dump's log record.
type rbkitDump struct {
	severity            plog.SeverityNumber
	announced, received int64
	complete            bool
}

// rbkitPart is the number of objects in a part of a dump, except the last one.
const rbkitPart = 1000

// checkComplete checks that a dump had all objects of so many parts.
func (d rbkitDump) checkComplete(t *testing.T, parts int) {
	t.Helper()
	assert.True(t, d.complete)
	assert.Equal(t, d.announced, d.received)
	assert.EqualValues(t, parts, (d.received+rbkitPart-1)/rbkitPart, "parts of %d objects", d.received)
	assert.Equal(t, plog.SeverityNumberInfo, d.severity)
}

func dumpsOf(t *testing.T, c *kit.Collector) (dumps []rbkitDump) {
	t.Helper()
	eachLog(t, c, func(_ pcommon.Resource, r plog.LogRecord) {
		if r.EventName() != "rbkit.dump" {
			return
		}
		d := rbkitDump{severity: r.SeverityNumber()}
		announced, _ := r.Attributes().Get("rbkit.dump.objects.announced")
		received, _ := r.Attributes().Get("rbkit.dump.objects.received")
		complete, _ := r.Attributes().Get("rbkit.dump.complete")
		d.announced, d.received, d.complete = announced.Int(), received.Int(), complete.Bool()
		dumps = append(dumps, d)
	})
	return dumps
}

// A missing part of a dump is logged, and the earlier live objects stay.
func TestAnIncompleteRbkitDumpIsLogged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dump uint64 // its type
		left int    // the omitted part
		// announced is how many objects the dump has.
		announced, missing int64
	}{
		"released-30s":   {dump: 5, left: 3, announced: 16_751, missing: rbkitPart},
		"documented-30s": {dump: 4, left: 17, announced: 17_120, missing: 120},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, played := newRbkitServer(t), openRbkit(t, name)
			at := slices.IndexFunc(played.Messages, func(m capture.Message) bool { return m.Events[test.dump] > 0 })
			whole := played.Messages[at].Data
			c := kit.Start(t, server.client("", ""))
			s := server.start(t, played)
			awaitSubscriber(t, c, s)
			s.Publish(whole)
			c.AwaitMetric(t, 1, rbkitDumps, `objects="complete"`)
			s.Stop()
			// Parts may still arrive until the server has ended.
			s = server.start(t, played)
			awaitSubscriber(t, c, s)
			s.Publish(withoutPart(t, whole, test.dump, test.left))
			events, _ := eventsOf(played.Messages[at])
			c.AwaitMetric(t, 2*events-1, rbkitEvents)
			assert.Zero(t, c.Metric(t, rbkitDumps, `objects="incomplete"`))
			s.Kill()
			c.AwaitMetric(t, 1, rbkitDumps, `objects="incomplete"`)
			c.Stop(t)
			dumps := dumpsOf(t, c)
			require.Len(t, dumps, 2)
			dumps[0].checkComplete(t, int(played.Messages[at].Events[test.dump]))
			assert.Equal(t, rbkitDump{
				severity: plog.SeverityNumberWarn, announced: test.announced, received: test.announced - test.missing,
			}, dumps[1])
		})
	}
}

// withoutPart is a message without the part of a dump of that index; eventType is that
// of dumps.
func withoutPart(t *testing.T, message []byte, eventType uint64, part int) []byte {
	t.Helper()
	const payload = 2
	fields, rest, err := msgp.ReadMapHeaderBytes(message)
	require.NoError(t, err)
	for range fields {
		var key uint64
		key, rest, err = msgp.ReadUint64Bytes(rest)
		require.NoError(t, err)
		if key == payload {
			break // it is the last field
		}
		rest, err = msgp.Skip(rest)
		require.NoError(t, err)
	}
	head := message[:len(message)-len(rest)]
	n, rest, err := msgp.ReadArrayHeaderBytes(rest)
	require.NoError(t, err)
	made := msgp.AppendArrayHeader(slices.Clone(head), n-1)
	parts := 0
	for range n {
		next, err := msgp.Skip(rest)
		require.NoError(t, err)
		event := rest[:len(rest)-len(next)]
		rest = next
		// The first field of an event is its type.
		if is := uint64(event[2]) == eventType; is {
			if parts++; parts-1 == part {
				continue
			}
		}
		made = append(made, event...)
	}
	require.Empty(t, rest)
	require.Greater(t, parts, part)
	return made
}

// Everything that was switched on is switched on again in a restarted server, and confirmed. Its
// data is a new life.
func TestARestartedLibzmqServerGetsItsCommandsAgain(t *testing.T) {
	t.Parallel()
	server, played := newRbkitServer(t), openRbkit(t, "released-30s")
	c := kit.Start(t, server.client("memory_profile: true\n    cpu_profile: true\n    clock: cpu", ""))
	all, _ := eventsOf(played.Messages...)
	var lives []*rbkit.Server
	for life := range 3 {
		s := server.start(t, played)
		lives = append(lives, s)
		awaitSubscriber(t, c, s)
		awaitConfirmed(t, s)
		for _, m := range played.Messages {
			s.Publish(m.Data)
		}
		c.AwaitMetric(t, float64(1+life)*all, rbkitEvents)
		c.AwaitMetric(t, float64(life), rbkitRestarts)
		if life < 2 {
			s.Kill()
		}
	}
	assert.Zero(t, c.Metric(t, rbkitLost), "numbers of messages begin again")
	c.Stop(t)
	assert.Equal(t, switchOn, orders(lives[0]))
	assert.Equal(t, switchOn, orders(lives[1]))
	assert.Equal(t, append(slices.Clone(switchOn), protocol.StopMemoryProfile, protocol.StopCPUProfiling), orders(lives[2]))
	checkLives(t, c, lives, all)
}

// switchOn is how all that the receiver can switch on is, by the processor's clock.
var switchOn = []protocol.Command{protocol.StartMemoryProfile, protocol.UseCPUTime, protocol.StartCPUProfiling}

// orders are the commands that change something.
func orders(s *rbkit.Server) []protocol.Command {
	return slices.DeleteFunc(s.Commands(), func(c protocol.Command) bool { return c == protocol.Handshake })
}

// awaitConfirmed waits until all is switched on and the server was asked whether it is.
func awaitConfirmed(t *testing.T, s *rbkit.Server) {
	t.Helper()
	testkit.Eventually(t, "everything that was switched on is confirmed", func() (bool, string) {
		commands := s.Commands()
		last := slices.Index(commands, protocol.StartCPUProfiling)
		return last >= 0 && slices.Contains(commands[last:], protocol.Handshake), fmt.Sprint(commands)
	})
	state := s.State()
	assert.True(t, state.ObjectTraceEnabled)
	assert.True(t, state.CPUProfiling)
	assert.Equal(t, "cpu", state.Clock)
}

// checkLives checks that the metrics of each life have all its events, and its start: that of the
// process for values that the process counts, the arrival of the receiver for others.
func checkLives(t *testing.T, c *kit.Collector, lives []*rbkit.Server, events float64) {
	t.Helper()
	type life struct {
		started, begun pcommon.Timestamp
		events         int64
	}
	seen := map[int64]life{}
	eachMetric(t, c, func(resource pcommon.Resource, m pmetric.Metric) {
		pid, known := resource.Attributes().Get("process.pid")
		require.True(t, known)
		l := seen[pid.Int()]
		switch m.Name() {
		case "rbkit.events":
			l.begun, l.events = m.Sum().DataPoints().At(0).StartTimestamp(), m.Sum().DataPoints().At(0).IntValue()
		case "ruby.gc.count":
			l.started = m.Sum().DataPoints().At(0).StartTimestamp()
		}
		seen[pid.Int()] = l
	})
	assert.Len(t, seen, len(lives))
	var before life
	for i, s := range lives {
		l := seen[int64(s.PID())]
		assert.EqualValues(t, events, l.events, "life %d", i)
		assert.Greater(t, l.started, before.started, "life %d", i)
		assert.Greater(t, l.begun, before.begun, "life %d", i)
		assert.Less(t, l.started, l.begun, "life %d", i)
		before = l
	}
}

// eachMetric calls f with the metrics that a collector wrote.
func eachMetric(t *testing.T, c *kit.Collector, f func(pcommon.Resource, pmetric.Metric)) {
	t.Helper()
	eachLine(t, filepath.Join(c.Dir, "metrics.json"), func(line json.RawMessage) {
		metrics, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, resource := range metrics.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					f(resource.Resource(), m)
				}
			}
		}
	})
}

// A server may be down for long, and restart any number of times.
func TestALibzmqServerIsFollowedThroughOutagesAndRestarts(t *testing.T) {
	t.Parallel()
	const restarts, fewMessages, manyTries = 5, 5, 20
	server, played := newRbkitServer(t), openRbkit(t, "released-30s")
	began := time.Now()
	c := kit.Start(t, server.client("", ""))
	few, _ := eventsOf(played.Messages[:fewMessages]...)
	live := func(life int) {
		s := server.start(t, played)
		awaitSubscriber(t, c, s)
		for _, m := range played.Messages[:fewMessages] {
			s.Publish(m.Data)
		}
		if life%2 == 0 {
			s.Stop() // its published messages still arrive
			c.AwaitMetric(t, float64(1+life)*few, rbkitEvents)
		} else {
			c.AwaitMetric(t, float64(1+life)*few, rbkitEvents)
			s.Kill()
		}
		testkit.Eventually(t, "the server is gone", func() (bool, string) { return c.Metric(t, rbkitServers) == 0, c.Log() })
	}
	live(0)
	goroutines, files := c.Goroutines(t), c.OpenFiles(t)
	failed := c.Metric(t, rbkitFailures, `socket="publish"`)
	c.AwaitMetric(t, failed+manyTries, rbkitFailures, `socket="publish"`)
	checkLinesOf(t, c, began, "an outage", server, saidLost, "connection refused")
	for life := range restarts {
		live(1 + life)
	}
	assert.EqualValues(t, restarts, c.Metric(t, rbkitRestarts))
	assert.EqualValues(t, (1+restarts)*few, c.Metric(t, rbkitEvents))
	assert.Zero(t, c.Metric(t, rbkitLost))
	testkit.Eventually(t, "the connections' goroutines have ended", func() (bool, string) {
		now, open := c.Goroutines(t), c.OpenFiles(t)
		return now <= goroutines && open <= files, fmt.Sprintf("%d goroutines, %d files; at first %d, %d", now, open, goroutines, files)
	})
	c.Stop(t)
	said := map[string]int{}
	eachLog(t, c, func(_ pcommon.Resource, r plog.LogRecord) { said[r.EventName()]++ })
	assert.Equal(t, map[string]int{
		"rbkit.server.connected": 1 + restarts, "rbkit.server.gone": 1 + restarts, "rbkit.server.restarted": restarts,
	}, said)
}

// A collector that is stopped for a while gets the messages in the server's queue, and counts those
// that the queue dropped.
func TestASlowCollectorLosesOnlyMessagesThatLibzmqDrops(t *testing.T) {
	t.Parallel()
	// More than the buffers of the system have room for, and less than the queue of a real server.
	const messages, eventsOfMessage = 250, 4000
	for name, keeps := range map[string]int{"the server queues all messages": 0, "the server queues 5 messages": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, played := newRbkitServer(t), openRbkit(t, "released-30s")
			c := kit.Start(t, server.client("timeout: 1m", "")) // in which it is frozen
			options := server.options(played)
			options.QueueMessages = keeps
			s := rbkit.Start(t, options)
			awaitSubscriber(t, c, s)
			program := rbkitserver.NewLoad(protocol.Released, rbkitserver.LoadOptions{Events: eventsOfMessage, Classes: 10, Seed: 1})
			s.Publish(numberedMessage(t, program, 0))
			c.AwaitMetric(t, 1, rbkitEvents)
			sent, unnumbered := 1, c.Metric(t, rbkitMessages)-1
			c.Freeze(t)
			for ; sent < messages; sent++ {
				s.Publish(numberedMessage(t, program, sent))
			}
			c.Thaw(t)
			seen := 0.0
			testkit.Eventually(t, "all messages have arrived or are lost", func() (bool, string) {
				came, lost := c.Metric(t, rbkitMessages)-unnumbered, c.Metric(t, rbkitLost)
				if came+lost == float64(sent) {
					return true, ""
				}
				if came == seen {
					// Lost messages are noticed when later ones arrive.
					s.Publish(numberedMessage(t, program, sent))
					sent++
				}
				seen = came
				return false, fmt.Sprintf("%v arrived, %v are lost, of %d", came, lost, sent)
			})
			t.Logf("%d messages, %v lost", sent, c.Metric(t, rbkitLost))
			if keeps == 0 {
				assert.Zero(t, c.Metric(t, rbkitLost))
			} else {
				assert.Positive(t, c.Metric(t, rbkitLost))
			}
			c.Stop(t)
		})
	}
}

// A pipeline that refuses delays no server: the collector reads the server, and delivers refused
// data later.
func TestAPipelineThatRefusesDoesNotDelayALibzmqServer(t *testing.T) {
	t.Parallel()
	var accepts atomic.Bool
	var spans, refused atomic.Int64
	endpoint, _ := kit.ServeOTLP(t, kit.Accept{Traces: func(traces ptrace.Traces) int {
		if !accepts.Load() {
			refused.Add(1)
			return refuse()
		}
		spans.Add(int64(traces.SpanCount()))
		return accept()
	}})
	server, played := newRbkitServer(t), openRbkit(t, "released-30s")
	c := kit.Start(t, rbkitClient{servers: []rbkitServer{server}, exporters: toBackend(endpoint), spans: "otlp_http"}.config())
	s := server.start(t, played)
	awaitSubscriber(t, c, s)
	for _, m := range played.Messages {
		s.Publish(m.Data)
	}
	all, _ := eventsOf(played.Messages...)
	c.AwaitMetric(t, all, rbkitEvents)
	assert.Zero(t, spans.Load())
	testkit.Eventually(t, "spans are refused", func() (bool, string) { return refused.Load() > 1, "" })
	accepts.Store(true)
	testkit.Eventually(t, "all spans arrive", func() (bool, string) { return spans.Load() >= 15, fmt.Sprint(spans.Load()) })
	assert.Zero(t, c.Metric(t, "otelcol_receiver_rbkit_spans_dropped"))
	c.Stop(t)
	assert.EqualValues(t, 15, spans.Load(), "each once")
}

// numberedMessage is a message of a program.
func numberedMessage(t *testing.T, program *rbkitserver.Load, number int) []byte {
	t.Helper()
	events := protocol.NewCollection(protocol.Released)
	now := time.Now()
	require.NoError(t, program.Message(now, events))
	return events.AppendTo(nil, protocol.Time(now.UnixMilli()), uint64(number))
}
