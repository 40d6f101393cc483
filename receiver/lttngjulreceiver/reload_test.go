// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

// playAgents runs simulated agents until end is called or the test ends.
func playAgents(t *testing.T, options ...logagent.Options) (agents []*logagent.Agent, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, o := range options {
		a := logagent.New(o)
		agents = append(agents, a)
		// An agent in Python fails if it finds no daemon.
		running.Go(func() { assert.NoError(t, a.Run(ctx)) })
	}
	end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(end)
	return agents, end
}

func TestAnAgentConnectsAgainAfterAReloadAndGetsAllCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.port")
	rules := func(c *Config) {
		twoRules(c)
		c.PortFiles = []string{file}
	}
	first := newBed(t, rules)
	agents, _ := playAgents(t, logagent.Options{PortFile: file, PID: 1, Loggers: []string{"com.example.db"}, Retry: 5 * time.Millisecond})
	enabled := map[string]int{"com.example.*": 1, "org.other": 1}
	contexts := map[string]int{"shop:user": 1}
	first.awaitRecords(eventAppeared, 1)
	assert.Equal(t, enabled, agents[0].Enabled())
	assert.Equal(t, contexts, agents[0].Contexts())
	first.Shutdown()
	assert.Empty(t, agents[0].Enabled(), "the shutdown restores it")
	assert.Empty(t, agents[0].Contexts())

	// The port may differ.
	second := newBed(t, rules)
	second.awaitRecords(eventAppeared, 1)
	assert.Equal(t, enabled, agents[0].Enabled())
	assert.Equal(t, contexts, agents[0].Contexts())
	second.Shutdown()
	assert.Empty(t, agents[0].Enabled())
}

func TestLoggersThatAppearAndDisappearAreRecordedAndCounted(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ListInterval = 10 * time.Millisecond })
	agents, _ := playAgents(t, logagent.Options{Address: b.address(), PID: 1, Loggers: []string{"a", "b"}})
	assert.Equal(t, []string{"a", "b"}, loggersOf(b.awaitRecords(eventAppeared, 2)))
	agents[0].Attach("c", "")
	assert.Equal(t, []string{"", "c"}, loggersOf(b.awaitRecords(eventAppeared, 4)[2:]))
	agents[0].Detach("a")
	gone := b.awaitRecords(eventDisappeared, 1)[0]
	assert.Equal(t, "Logger a disappeared", gone.body)
	b.Await("the metric", func() bool { return b.point("lttng.logger.count", "jul") == 3 })
}

func TestAgentsOfAllDomainsGetTheirCommands(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{
			{Domain: "jul", Logger: "j", Level: "INFO"}, {Domain: "log4j", Logger: "l", Level: "WARN"},
			{Domain: "log4j2", Logger: "m", Level: "DEBUG"}, {Domain: "python", Logger: "*"},
		}
		c.Contexts = []ContextRule{{Provider: "shop", Name: "user"}}
	})
	var options []logagent.Options
	for i, d := range lttngagent.Domains() {
		options = append(options, logagent.Options{Address: b.address(), Domain: d, PID: uint32(i + 1), Loggers: []string{"of " + d.String()}})
	}
	agents, _ := playAgents(t, options...)
	b.awaitRecords(eventAppeared, len(agents))
	user := map[string]int{"shop:user": 1}
	assert.Equal(t, map[string]int{"j": 1}, agents[0].Enabled())
	assert.Equal(t, map[string]int{"l": 1}, agents[1].Enabled())
	assert.Equal(t, map[string]int{"m": 1}, agents[3].Enabled())
	assert.Len(t, agents[2].Enabled(), 1)
	assert.Equal(t, user, agents[0].Contexts())
	assert.Equal(t, user, agents[1].Contexts())
	assert.Empty(t, agents[2].Contexts(), "Python's agent would close")
	assert.Equal(t, user, agents[3].Contexts())
	for _, a := range agents {
		assert.Equal(t, 1, a.Stats().Connections)
	}
	b.Shutdown()
	for _, a := range agents {
		assert.Empty(t, a.Enabled())
		assert.Empty(t, a.Contexts())
	}
	assert.Empty(t, b.records(eventRefused))
}

func TestAnAgentOfTheRFCIsListedAndEnabledByName(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Protocol = ProtocolRFC
		c.Enable = []EnableRule{{Domain: "jul", Logger: "com.example.db"}}
	})
	agents, _ := playAgents(t, logagent.Options{Address: b.address(), Dialect: lttngagent.RFC, Loggers: []string{"com.example.db"}})
	registered := b.awaitRecords(eventRegistered, 1)[0]
	assert.Equal(t, "rfc", registered.attributes[attributeProtocol])
	assert.NotContains(t, registered.resource, attributeProcessID)
	assert.Equal(t, "unknown_service:java", registered.resource[attributeServiceName])
	b.awaitRecords(eventAppeared, 1)
	b.Await("it is enabled", func() bool { return agents[0].Enabled()["com.example.db"] == 1 })
	b.Shutdown()
	assert.Empty(t, agents[0].Enabled())
}

// A command of the RFC would end the thread of an agent of 2.0, and the program would have no agent until its next
// start.
func TestAnAgentOf2GetsNoCommandOfTheRFC(t *testing.T) {
	for _, domain := range []lttngagent.Domain{lttngagent.JUL, lttngagent.Python} {
		b := unstartedBed(t, func(c *Config) { c.Protocol = ProtocolRFC })
		b.receiver.silence = patience
		b.Start()
		agents, _ := playAgents(t, logagent.Options{Address: b.address(), Domain: domain, PID: 1, Loggers: []string{"a"}, Retry: time.Millisecond})
		b.Await("it comes back", func() bool { return b.Counter("refused") >= 3 })
		assert.Equal(t, "byte 0: expected nothing before the next command, got something: agents of protocol 2.0 register in this way: leave out `protocol: rfc`",
			b.AwaitLine(lineRefused).ContextMap()["error"])
		assert.Positive(t, b.Counter("bad_data"))
		assert.Zero(t, agents[0].Stats().Unanswered, "nothing was sent to it")
		b.Shutdown()
	}
}

// An agent of 2.0 needs that time to register.
func TestAnAgentOfTheRFCIsListedAfterASecondOfSilence(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.Protocol = ProtocolRFC })
	shipped, err := newReceiver(b.Settings, b.receiver.config)
	require.NoError(t, err)
	require.Equal(t, time.Second, shipped.Protocol.(*julReceiver).silence)
	b.receiver.silence = shipped.Protocol.(*julReceiver).silence / 10
	b.Start()
	before := time.Now()
	a := b.connect()
	a.dialect = lttngagent.RFC
	require.Equal(t, lttngagent.List{}, a.next())
	assert.GreaterOrEqual(t, time.Since(before), b.receiver.silence)
}

func TestAShutdownDoesNotWaitForTheSilenceOfAnAgentOfTheRFC(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.Protocol = ProtocolRFC })
	b.receiver.silence = time.Hour
	b.Start()
	a := b.connect()
	b.Await("it is accepted", func() bool { return b.Counter("connections") == 1 })
	b.Shutdown()
	sent, err := io.ReadAll(a.in)
	require.NoError(t, err)
	assert.Empty(t, sent)
}

func TestAnAgentOfTheRFCThatNeverAnswersHasNotRegistered(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Protocol = ProtocolRFC
		c.Limits.RegistrationTimeout = 20 * time.Millisecond
	})
	b.connect().awaitClosed()
	assert.Contains(t, b.AwaitLine(lineRefused).ContextMap()["error"], "expected a list of loggers within 20ms")
	assert.Empty(t, b.records(""))
}

func TestManyAgentsAreAllListed(t *testing.T) {
	const agentCount, loggerCount = 100, 50
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{{Domain: "jul", Logger: "*", Level: "FINER"}}
	})
	var options []logagent.Options
	for i := range agentCount {
		options = append(options, logagent.Options{Address: b.address(), PID: uint32(i + 1), Loggers: logagent.Names(loggerCount)})
	}
	agents, _ := playAgents(t, options...)
	b.Await("all loggers", func() bool { return len(b.records(eventAppeared)) == agentCount*loggerCount })
	b.Await("the metrics", func() bool {
		return b.point("lttng.logger.count", "jul") == agentCount*loggerCount && b.point("lttng.agent.count", "jul") == agentCount &&
			b.point("lttng.agent.registrations", "jul") == agentCount
	})
	instances := map[any]bool{}
	for _, r := range b.records(eventRegistered) {
		instances[r.resource[attributeServiceInstanceID]] = true
	}
	assert.Len(t, instances, agentCount)
	b.Shutdown()
	for i, a := range agents {
		assert.Empty(t, a.Enabled(), fmt.Sprint("agent ", i))
	}
	assert.Zero(t, b.Counter("log_records_dropped"))
	b.awaitNothingHeld()
}

func TestAnAgentConnectsAgainAfterEachFault(t *testing.T) {
	for _, name := range logagent.FaultNames() {
		t.Run(name, func(t *testing.T) {
			kind, err := logagent.ParseFaultKind(name)
			require.NoError(t, err)
			b := newBed(t, func(c *Config) {
				c.CommandTimeout, c.Limits.RegistrationTimeout = 300*time.Millisecond, 300*time.Millisecond
				c.ListInterval = 20 * time.Millisecond
				c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}}
			})
			playAgents(t, logagent.Options{
				Address: b.address(), PID: 1, Loggers: []string{"a"}, Retry: 5 * time.Millisecond,
				Fault: logagent.Fault{Kind: kind, Times: 1},
			})
			if kind == logagent.Refuse {
				b.Await("it is refused", func() bool { return len(b.records(eventRefused)) > 0 })
				return
			}
			b.Await("the connection is lost", func() bool { return b.Counter("refused")+b.Counter("agents_gone") > 0 })
			b.Await("the agent is back", func() bool { return len(b.records(eventAppeared)) > 0 })
		})
	}
}

func TestAgentsDoNotWaitForAPipelineThatRefusesLogs(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Limits.MaxQueuedLogs = 5
		c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}}
		c.ShutdownTimeout = time.Second
	})
	b.Logs.RefuseWith(receivertestbed.ErrRefused)
	var options []logagent.Options
	for i := range 20 {
		options = append(options, logagent.Options{Address: b.address(), PID: uint32(i + 1), Loggers: logagent.Names(10)})
	}
	agents, _ := playAgents(t, options...)
	b.Await("all are listed", func() bool { return b.point("lttng.logger.count", "jul") == 200 })
	b.Await("records are dropped", func() bool { return b.Counter("log_records_dropped") > 0 })
	b.Shutdown()
	for _, a := range agents {
		assert.Empty(t, a.Enabled())
	}
}
