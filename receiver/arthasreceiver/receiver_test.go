// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
)

// bed is a receiver of a simulated server.
type bed struct {
	*receivertestbed.Bed
	server   *arthasserver.Server
	endpoint string
	receiver *arthasReceiver
}

// newPlayed returns a simulated server with short times.
func newPlayed(change func(*arthasserver.Settings)) *arthasserver.Server {
	settings := arthasserver.Settings{
		Classes:  map[string][]string{"demo.Shop": {"buy", "row"}, "demo.Pay": {"charge"}},
		PullWait: 50 * time.Millisecond, Gather: 5 * time.Millisecond, Second: 200 * time.Millisecond,
	}
	if change != nil {
		change(&settings)
	}
	return arthasserver.New(settings)
}

// newServer returns a simulated server that listens until the end of the test.
func newServer(t *testing.T, change func(*arthasserver.Settings)) (*arthasserver.Server, string) {
	server := newPlayed(change)
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	t.Cleanup(server.Close)
	return server, listening.URL
}

// newBed returns a receiver that is not started.
func newBed(t testing.TB, server *arthasserver.Server, endpoint string, change func(*Config)) *bed {
	b := &bed{Bed: receivertestbed.New(t, metadata.Type), server: server, endpoint: endpoint}
	config := createDefaultConfig()
	config.Servers = []ServerConfig{{}}
	config.Servers[0].Endpoint = endpoint
	config.PollInterval, config.IdlePollInterval = 10*time.Millisecond, 10*time.Millisecond
	config.CollectionInterval = time.Hour
	config.Reconnect = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond}
	change(config)
	require.NoError(t, config.Validate())
	r, err := newReceiver(b.Settings, config)
	require.NoError(t, err)
	b.Use(r)
	b.receiver = r.Protocol.(*arthasReceiver)
	return b
}

// points returns the sums of a metric's points, by name of function, pool or state.
func (b *bed) points(name string) map[string]float64 {
	all := map[string]float64{}
	metrics := b.receiver.env.metrics.metrics(b.receiver.living(), time.Now())
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != name {
				continue
			}
			for _, p := range pointsOf(m).All() {
				key := ""
				for _, v := range p.Attributes().All() {
					key += v.AsString()
				}
				all[key] += p.DoubleValue() + float64(p.IntValue())
			}
		}
	}
	return all
}

func pointsOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

// on selects methods of classes.
func on(class, method string) TargetConfig {
	return TargetConfig{TargetConfig: task.TargetConfig{Class: class, Method: method}}
}

var shop = on("demo.Shop", "buy")

func buy(cost time.Duration) arthasserver.Call {
	return arthasserver.Call{
		Class: "demo.Shop", Method: "buy", Thread: "worker-1", ThreadID: 13, Cost: cost,
		Children: []arthasserver.Call{{Class: "demo.Shop", Method: "row", Line: 9, Cost: time.Millisecond}},
	}
}

func (b *bed) awaitRestored() {
	b.T.Helper()
	assert.Empty(b.T, b.server.Instrumented())
	// A request of the receiver's last interval may still run at the server.
	b.Await("no session", func() bool { sessions, _ := b.server.Sessions(); return sessions == 0 })
	assert.Empty(b.T, b.server.Redirected())
}

// All commands are on the same class. The first of them to end must not reset it: no later reset would restore it.
func TestAllResultsArriveAndTheProgramIsRestored(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Monitors = []MonitorConfig{{TargetConfig: on("demo.*", "buy"), Cycle: time.Second}}
		c.Traces = []TraceConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 3}}}
		c.Stacks = []CallsConfig{{TargetConfig: shop, Limit: 2}}
		c.Watches = []WatchConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: -1}}}
		c.Records = []RecordsConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 4}}}
		c.JVM.Interval = time.Second
	})
	b.Start()
	b.Await("all results", func() bool {
		server.Call(buy(20 * time.Millisecond))
		return len(b.Spans()) >= 6 && len(b.Records("arthas.stack")) >= 2 && len(b.Records("arthas.watch")) >= 2 && len(b.Records("arthas.record")) >= 4 &&
			len(b.points("java.method.calls")) > 0 && len(b.points("jvm.memory.used")) > 0
	})
	assert.Greater(t, b.points("java.method.calls")["demo.Shop.buy"], 0.0)
	assert.InDelta(t, 0.02, b.points("java.method.time")["demo.Shop.buy"]/b.points("java.method.calls")["demo.Shop.buy"], 1e-9)
	assert.NotEmpty(t, b.points("jvm.thread.count"))
	b.Shutdown()
	b.awaitRestored()
	assert.Len(t, b.Spans(), 6, "three trees with two calls")
	assert.Len(t, b.Records("arthas.stack"), 2)
	gone := b.Records("arthas.server.gone")
	require.Len(t, gone, 1)
	assert.Equal(t, "The server is no longer asked", gone[0].Body().Str())
	why, _ := gone[0].Attributes().Get("arthas.error.message")
	assert.Equal(t, session.ErrShutdown.Error(), why.Str())
	assert.Len(t, b.Records("arthas.record"), 4)
	_, polls := server.Requests()
	assert.Equal(t, 1, polls, "open polls at the same time")
}

// All requests use the settings of the HTTP client, with the user and the password.
func TestServersAreReachedOverTLSAndByAProxy(t *testing.T) {
	locked := func(s *arthasserver.Settings) { s.Username, s.Password, s.LocalToo = "arthas", "secret", true }
	for name, reach := range map[string]func(t *testing.T, server http.Handler, c *ServerConfig){
		"TLS": func(t *testing.T, server http.Handler, c *ServerConfig) {
			listening := httptest.NewTLSServer(server)
			t.Cleanup(listening.Close)
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw})
			c.Endpoint, c.TLS.CAPem = listening.URL, configopaque.String(authority)
		},
		// Only the proxy knows the host.
		"proxy": func(t *testing.T, server http.Handler, c *ServerConfig) {
			proxy := httptest.NewServer(server)
			t.Cleanup(proxy.Close)
			c.Endpoint, c.ProxyURL = "http://arthas.invalid:8563", proxy.URL
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newPlayed(locked)
			t.Cleanup(server.Close)
			b := newBed(t, server, "http://localhost", func(c *Config) {
				reach(t, server, &c.Servers[0])
				c.Servers[0].Username, c.Servers[0].Password = "arthas", "secret"
				c.Stacks = stacksOf(1)
			})
			b.Start()
			b.awaitJobs(1)
			server.Call(buy(time.Millisecond))
			b.awaitStacks(1)
			b.Shutdown()
			b.awaitRestored()
		})
	}
}

func TestACallThatBeganBeforeItsClassWasInstrumentedAddsNoTime(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Monitors = []MonitorConfig{{TargetConfig: shop, Cycle: time.Second}}
		c.Traces = []TraceConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 1}}}
	})
	b.Start()
	b.Await("two jobs", func() bool { _, jobs := server.Sessions(); return jobs == 2 })
	server.CallInFlight(buy(time.Millisecond))
	b.Await("a counted call", func() bool { return b.points("java.method.calls")["demo.Shop.buy"] == 1 })
	assert.Zero(t, b.points("java.method.time")["demo.Shop.buy"])
	b.Await("a tree that is left out", func() bool { return b.Counter("trees_left_out") == 1 })
	assert.Empty(t, b.Spans())
	b.Shutdown()
	b.awaitRestored()
}

func TestSumsContinueInTheSameProcessAndBeginAgainInAnother(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) { c.Monitors = []MonitorConfig{{TargetConfig: shop, Cycle: time.Second}} })
	b.Start()
	running := func() bool { _, jobs := server.Sessions(); return jobs == 1 }
	b.Await("a job", running)
	server.Call(buy(time.Millisecond))
	server.Call(buy(time.Millisecond))
	b.Await("two calls", func() bool { return b.points("java.method.calls")["demo.Shop.buy"] == 2 })
	server.Inject("pull_results", arthasserver.FaultHTML)
	b.Await("a lost command", func() bool { return b.Points()["commands{outcome=lost}"] == 1 })
	b.Await("a job", running)
	server.Call(buy(time.Millisecond))
	b.Await("three calls", func() bool { return b.points("java.method.calls")["demo.Shop.buy"] == 3 })
	server.Restart()
	b.Await("the restart", func() bool { return len(b.Records("arthas.server.restarted")) == 1 })
	b.Await("a job", running)
	server.Call(buy(time.Millisecond))
	b.Await("one call", func() bool { return b.points("java.method.calls")["demo.Shop.buy"] == 1 })
	b.Shutdown()
	b.awaitRestored()
}

func TestAPatternWithoutAMatchIsTriedAgain(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Stacks = []CallsConfig{{TargetConfig: on("demo.None", "*")}}
	})
	b.Start()
	b.AwaitRecords("arthas.pattern.unmatched", 1)
	const unmatched = "A pattern matches no class or method: the receiver tries again"
	b.AwaitLine(unmatched)
	b.Await("another try", func() bool { actions, _ := server.Requests(); return actions["async_exec"] > 2 })
	b.Shutdown()
	assert.Equal(t, 1, b.Lines(unmatched))
	assert.Len(t, b.Records("arthas.pattern.unmatched"), 1)
	b.awaitRestored()
}

func TestTheReasonOfAFailureIsALine(t *testing.T) {
	server, endpoint := newServer(t, func(s *arthasserver.Settings) { s.Username, s.Password, s.LocalToo = "arthas", "secret", true })
	b := newBed(t, server, endpoint, func(c *Config) { c.JVM.Interval = time.Second })
	b.Start()
	const lost = "The server cannot be reached, or was lost: the receiver tries again"
	line := b.AwaitLine(lost)
	assert.Contains(t, line.ContextMap()["error"], arthas.ErrUnauthorized.Error())
	b.Shutdown()

	b = newBed(t, server, endpoint, func(c *Config) {
		c.JVM.Interval, c.Servers[0].Username, c.Servers[0].Password = time.Second, "arthas", "secret"
	})
	b.Start()
	b.AwaitRecords("arthas.server.connected", 1)
	b.Shutdown()
	assert.Zero(t, b.Lines(lost))
}

// A server that answers byte by byte must not delay a shutdown beyond its time.
func TestASlowServerDoesNotHoldAShutdown(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Stacks = []CallsConfig{{TargetConfig: shop}}
		c.ShutdownTimeout = 400 * time.Millisecond
	})
	b.Start()
	b.Await("a job", func() bool { _, jobs := server.Sessions(); return jobs == 1 })
	for range 100 {
		server.Inject("pull_results", arthasserver.FaultSlow)
		server.Inject("interrupt_job", arthasserver.FaultSlow)
		server.Inject("close_session", arthasserver.FaultSlow)
	}
	b.Shutdown()
}

// The last results are worth less than a program without the code of commands.
func TestAShutdownRestoresTheProgramAlthoughPollsAreSlow(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Stacks, c.Traces = stacksOf(-1), []TraceConfig{{CallsConfig: CallsConfig{TargetConfig: on("demo.Pay", "*")}}}
		c.ShutdownTimeout = 2 * time.Second
	})
	b.Start()
	b.awaitJobs(2)
	for range 100 {
		server.Inject("pull_results", arthasserver.FaultSlow)
	}
	b.Await("a slow poll", func() bool { actions, _ := server.Requests(); return actions["pull_results"] > 2 })
	b.Shutdown()
	b.awaitRestored()
}

// memory is a storage extension that outlives receivers.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}

func (m *memory) Close(context.Context) error { return nil }

// state returns the stored state of a server.
func (m *memory) state(t *testing.T, endpoint string) (state remembered.State) {
	value, _ := m.Get(t.Context(), "server."+endpoint)
	require.NoError(t, json.Unmarshal(value, &state))
	return state
}

type host struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component { return h.extensions }

func TestSessionsOfAKilledCollectorAreEnded(t *testing.T) {
	server, endpoint := newServer(t, nil)
	stored := &memory{values: map[string][]byte{}}
	id := component.MustNewID("file_storage")
	open := func(change func(*Config)) *bed {
		b := newBed(t, server, endpoint, func(c *Config) {
			c.Storage = &id
			change(c)
		})
		b.Host = host{componenttest.NewNopHost(), map[component.ID]component.Component{id: stored}}
		return b
	}
	first := open(func(c *Config) { c.JVM.Interval = time.Second })
	first.Start()
	first.AwaitRecords("arthas.server.connected", 1)
	first.Shutdown()

	// This client has the session of a collector that was killed.
	client, err := arthas.NewClient(newHTTPClient(), endpoint, arthas.Settings{})
	require.NoError(t, err)
	killed, err := client.Open(t.Context())
	require.NoError(t, err)
	class, err := arthas.NewPattern("demo.Shop")
	require.NoError(t, err)
	method, err := arthas.NewPattern("*")
	require.NoError(t, err)
	_, err = killed.Start(t.Context(), arthas.StackCommand{Target: arthas.Target{Target: javamethods.Target{Class: class, Method: method}}})
	require.NoError(t, err)
	state := stored.state(t, endpoint)
	state.Sessions = []remembered.Session{{ID: killed.ID(), Classes: remembered.Classes{Pattern: "demo.Shop"}}, {ID: "gone", Classes: remembered.Classes{Pattern: "demo.Pay"}}}
	value, err := json.Marshal(state)
	require.NoError(t, err)
	require.NoError(t, stored.Set(t.Context(), "server."+endpoint, value))
	require.NotEmpty(t, server.Instrumented())

	second := open(func(c *Config) { c.JVM.Interval = time.Second })
	second.Start()
	second.Await("restored classes", func() bool { return len(server.Instrumented()) == 0 && len(stored.state(t, endpoint).Owed) == 0 })
	assert.EqualValues(t, 1, second.Counter("leftover_sessions"))
	second.Shutdown()
	second.awaitRestored()
	assert.Empty(t, stored.state(t, endpoint).Sessions)
}

func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
